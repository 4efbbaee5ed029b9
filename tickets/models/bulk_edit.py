"""One change to many tickets: what was asked for, and what came of it for each ticket."""

from collections import Counter

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import translation
from django.utils.dateparse import parse_datetime
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.models import BackgroundTask

from .bulk_ticket import BulkOutcome, BulkTicket
from .editable import EDITABLE, Tags, clean_changes
from .team import Team
from .user import User

BULK = "BULK"
MAX_BULK = 1000  # tickets of one bulk edit: their result is one page
# What may be set for many at once. Subject or requester would make different tickets the same.
BULK_FIELDS = ("status", "priority", "assignee", "team", "due_at")


class BulkEditQuerySet(models.QuerySet):
    @transaction.atomic
    def request(self, by, tickets: dict[int, int], changes: dict, add_tags=(), remove_tags=()):
        """Ask for a change to many tickets. Returns the bulk edit; its task is WAITING.

        Args:
            tickets: the version the person saw, by the ticket's number; 0 if they saw none. Rights
                are judged when each ticket's turn comes.
            changes: new values of some of ``BULK_FIELDS``, the same for all tickets.
            add_tags: set besides those that a ticket has.
            remove_tags: taken away where a ticket has them, however they are capitalized.

        Raises:
            ValidationError: no ticket or more than ``MAX_BULK``, nothing to change, or a bad value.
        """
        changes = clean_changes(changes)
        added, removed = Tags().clean(add_tags), Tags().clean(remove_tags)
        if not tickets:
            raise ValidationError(_("Choose at least one ticket."))
        if len(tickets) > MAX_BULK:
            raise ValidationError(too_many(len(tickets)))
        if not changes and not added and not removed:
            raise ValidationError(_("Choose at least one change."))
        if not set(changes) <= set(BULK_FIELDS):
            raise ValidationError(_("That cannot be changed for many tickets at once."))
        bulk_edit = self.create(
            task=BackgroundTask.objects.enqueue(BULK, owner=by),
            by=by,
            changes={name: EDITABLE[name].to_json(value) for name, value in changes.items()},
            add_tags=added,
            remove_tags=removed,
            language=by.language or translation.get_language() or settings.LANGUAGE_CODE,
        )
        BulkTicket.objects.bulk_create(
            BulkTicket(bulk_edit=bulk_edit, number=number, seen_version=version)
            for number, version in tickets.items()
        )
        return bulk_edit


def too_many(count: int) -> str:
    text = _("At most %(limit)d tickets can be changed at once; these are %(count)d.")
    return text % {"limit": MAX_BULK, "count": count}


class BulkEdit(models.Model):
    """Its state is its task's; its id is its task's id. ``changes`` are values as history has
    them, by field; ``language`` is the one that reasons are told in."""

    task = models.OneToOneField(
        "tasks.BackgroundTask", models.CASCADE, primary_key=True, related_name="+", editable=False
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", editable=False
    )
    changes = models.JSONField(default=dict, editable=False)
    add_tags = ArrayField(models.CharField(max_length=50), default=list, editable=False)
    remove_tags = ArrayField(models.CharField(max_length=50), default=list, editable=False)
    language = models.CharField(max_length=10, editable=False)

    objects = BulkEditQuerySet.as_manager()

    class Meta:
        verbose_name = gettext_lazy("bulk edit")
        verbose_name_plural = gettext_lazy("bulk edits")

    def __str__(self):
        return f"{self._meta.verbose_name} {self.pk}"

    # Questions

    def values(self) -> dict:
        """The new values by field, for ``Ticket.edit``. Raises ValidationError if the person or the
        team was deleted meanwhile."""
        found = dict(self.changes)
        for name, model in (("assignee", User), ("team", Team)):
            if found.get(name) is not None:
                found[name] = model.objects.filter(pk=found[name]).first()
                if found[name] is None:
                    text = _("The chosen person or team does not exist any more.")
                    raise ValidationError(text)
        if found.get("due_at"):
            found["due_at"] = parse_datetime(found["due_at"])
        return found

    @cached_property
    def counts(self) -> Counter:
        """How many tickets, by outcome."""
        rows = self.tickets.order_by().values_list("outcome").annotate(models.Count("pk"))
        return Counter(dict(rows))

    # Verbs

    def cancel(self, by) -> bool:
        """What is changed stays changed; the rest is left alone. True if this call did it."""
        return self.task.cancel(by=by)

    def retry(self, by) -> bool:
        """Go on with the tickets that are left. True if this call did it."""
        return self.task.retry(by=by)

    def numbers_left(self) -> list[int]:
        left = self.tickets.filter(outcome=BulkOutcome.WAITING)
        return list(left.values_list("number", flat=True))
