"""The history of a ticket: append-only, one row per change."""

from django.apps import apps
from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils import formats, timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_noop, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from .editable import EDITABLE, Choice, Moment

# Rules under which the system acts, as stored in ``reason``; translated when shown.
REMINDER_RULE = gettext_noop("due date reached")
IMPORT_RULE = gettext_noop("import")


class EventKind(models.TextChoices):
    CREATED = "created", pgettext_lazy("history", "created")
    IMPORTED = "imported", _("imported")
    CHANGED = "changed", _("changed")
    COMMENTED = "commented", _("commented")
    REMINDED = "reminded", _("reminded")


class TicketEvent(models.Model):
    """``actor`` null means the system, and then ``reason`` names the rule.

    ``field`` is a stable key (``status``, ``due_at``, …) for ``changed`` events. Values are JSON;
    their display text is stored as it was, so history stays true when people or teams are renamed
    or deleted. ``version`` is the ticket's version after the change.
    """

    ticket = models.ForeignKey(
        "tickets.Ticket", models.CASCADE, related_name="events", verbose_name=_("ticket")
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("actor"),
    )
    actor_text = models.CharField(_("actor as it was"), max_length=200, blank=True, default="")
    reason = models.CharField(_("rule"), max_length=200, blank=True, default="")
    kind = models.CharField(_("kind"), max_length=20, choices=EventKind)
    field = models.CharField(_("field"), max_length=30, blank=True, default="")
    old_value = models.JSONField(_("old value"), null=True, blank=True)
    new_value = models.JSONField(_("new value"), null=True, blank=True)
    old_text = models.TextField(_("old"), blank=True, default="")
    new_text = models.TextField(_("new"), blank=True, default="")
    version = models.PositiveIntegerField(_("version"))
    at = models.DateTimeField(_("at"), db_default=Now())

    class Meta:
        verbose_name = _("history entry")
        verbose_name_plural = _("history")
        ordering = ["at", "id"]
        indexes = [
            # Readers: the ticket page's timeline; the merge of concurrent edits.
            models.Index(fields=["ticket", "at", "id"], name="event_timeline"),
        ]

    def __str__(self):
        return f"#{self.ticket_id} {self.get_kind_display()} {self.field_display}".strip()

    # Questions: how it reads, in the reader's language and time zone

    @staticmethod
    def by(person, reason: str = "") -> dict:
        """The fields of a new event that say who acted, and by which rule."""
        name = person.display_name[:200] if person else ""
        return {"actor": person, "actor_text": name, "reason": reason[:200]}

    @property
    def reason_display(self) -> str:
        return gettext(self.reason) if self.reason else ""

    @property
    def field_display(self) -> str:
        """The field's name for people."""
        model = apps.get_model("tickets", "Ticket")
        names = {field.name: field.verbose_name for field in model._meta.concrete_fields}
        return str(names.get(self.field, self.field))

    @property
    def old_display(self) -> str:
        return self._display(self.old_value, self.old_text)

    @property
    def new_display(self) -> str:
        return self._display(self.new_value, self.new_text)

    def _display(self, value, text: str) -> str:
        """The value for this reader where it can be told anew; names stay as they were."""
        kind = EDITABLE.get(self.field)
        if isinstance(kind, Choice) and value in kind.choices.values:
            return str(kind.choices(value).label)
        moment = parse_datetime(value) if isinstance(kind, Moment) and value else None
        if moment:
            return formats.date_format(timezone.localtime(moment), "DATETIME_FORMAT")
        return text
