"""One ticket of a bulk edit: what came of it."""

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from .editable import EDITABLE, Choice


class BulkOutcome(models.TextChoices):
    WAITING = "waiting", pgettext_lazy("bulk edit", "not yet")
    CHANGED = "changed", pgettext_lazy("bulk edit", "changed")
    PARTLY = "partly", _("changed in part")
    UNCHANGED = "unchanged", _("already so")
    CONFLICT = "conflict", _("changed by another meanwhile")
    REFUSED = "refused", _("not possible")
    NO_RIGHT = "no_right", _("no right to change it")
    NOT_FOUND = "not_found", _("not found")


class BulkTicketQuerySet(models.QuerySet):
    @transaction.atomic
    def settle(self, bulk_edit, number: int, values: dict) -> bool:
        """Change one ticket and record what came of it, both or neither. True if this call did it:
        the lock on the row makes a second execution wait, and then find it settled.

        ``values``: those of ``bulk_edit``, loaded once for all tickets.
        """
        row = self.select_for_update().get(bulk_edit=bulk_edit, number=number)
        if row.outcome != BulkOutcome.WAITING:
            return False
        row.outcome, row.reason = row._outcome_of_change(bulk_edit, values)
        row.save(update_fields=["outcome", "reason"])
        return True


class BulkTicket(models.Model):
    """``number`` is what was chosen, and no foreign key: a forged one is told as what it is, not
    found, and one of a deleted ticket stays."""

    bulk_edit = models.ForeignKey(
        "tickets.BulkEdit", models.CASCADE, related_name="tickets", editable=False
    )
    number = models.BigIntegerField(editable=False)
    seen_version = models.PositiveIntegerField(default=0, editable=False)
    outcome = models.CharField(
        max_length=10, choices=BulkOutcome, default=BulkOutcome.WAITING, editable=False
    )
    reason = models.TextField(blank=True, default="", editable=False)

    objects = BulkTicketQuerySet.as_manager()

    class Meta:
        verbose_name = _("ticket of a bulk edit")
        verbose_name_plural = _("tickets of a bulk edit")
        ordering = ["id"]
        constraints = [
            # Reader as well: the bulk edit's page and its handler.
            models.UniqueConstraint(
                fields=["bulk_edit", "number"], name="one_outcome_per_ticket_of_a_bulk_edit"
            ),
            models.CheckConstraint(
                condition=models.Q(outcome__in=BulkOutcome.values), name="bulk_outcome_is_known"
            ),
        ]

    def __str__(self):
        return f"#{self.number}: {self.get_outcome_display()}"

    def _outcome_of_change(self, bulk_edit, values: dict) -> tuple[str, str]:
        """The outcome, and the reason where its name does not say it."""
        from .ticket import Ticket  # which is made of the mixin that is called here

        visible = Ticket.objects.visible_to(bulk_edit.by).filter(pk=self.number)
        ticket = visible.first()
        if ticket is None:
            return BulkOutcome.NOT_FOUND, ""
        try:
            edit = ticket.change_among_many(
                by=bulk_edit.by,
                changes=values,
                version=self.seen_version or None,
                add_tags=bulk_edit.add_tags,
                remove_tags=bulk_edit.remove_tags,
            )
        except Ticket.DoesNotExist:
            return BulkOutcome.NOT_FOUND, ""
        except PermissionDenied:
            # Another may have moved it out of sight just now.
            return (BulkOutcome.NO_RIGHT if visible.exists() else BulkOutcome.NOT_FOUND), ""
        except ValidationError as error:
            return BulkOutcome.REFUSED, " ".join(error.messages)
        if not edit.conflicts:
            return (BulkOutcome.CHANGED if edit.saved else BulkOutcome.UNCHANGED), ""
        outcome = BulkOutcome.PARTLY if edit.saved else BulkOutcome.CONFLICT
        return outcome, "; ".join(_told(Ticket, each) for each in edit.conflicts)


def _told(model, conflict) -> str:
    """``priority: high``, what another had set, in the active language."""
    kind, text = EDITABLE[conflict.field], conflict.theirs_text
    if isinstance(kind, Choice):
        text = kind.choices(conflict.theirs).label
    return f"{model._meta.get_field(conflict.field).verbose_name}: {text or '—'}"
