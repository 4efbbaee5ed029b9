"""Opening a ticket."""

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils.translation import gettext as _

from tasks.clock import database_now

from .editable import EDITABLE, clean_changes
from .ticket_event import EventKind, TicketEvent


class TicketOpening:
    """Capability of Ticket's queryset: opening one."""

    @transaction.atomic
    def open(self, *, by, team, subject: str, reason: str = "", **others):
        """The new ticket, with its history and its reminder: all three or none.

        Args:
            by: the creator; None for the system, and then ``reason`` names the rule.
            others: any field of ``EDITABLE``; without it the model's default. A due date that is
                already past reminds at once.

        Raises:
            TypeError: there is no such field.
            PermissionDenied: the person may not work tickets of this team.
            ValidationError: by field.
        """
        if unknown := others.keys() - EDITABLE.keys():
            raise TypeError(f"A ticket has no such fields: {', '.join(sorted(unknown))}")
        fields = {"team": team, "subject": subject} | others
        values = clean_changes(self._defaults() | fields)
        now = database_now()
        ticket = self.model(**values, creator=by, created_at=now, updated_at=now)
        if by is not None and not team.is_workable_by(by):
            raise PermissionDenied(_("You may not open tickets in this team."))
        ticket._require_right(by, reason)
        ticket._require_able_assignee(values)
        ticket.derive_times(now)
        ticket.save(force_insert=True)
        TicketEvent.objects.create(
            ticket=ticket,
            **TicketEvent.by(by, reason),
            kind=EventKind.CREATED,
            new_text=ticket.subject,
            version=ticket.version,
            at=now,
        )
        if ticket.due_at:
            ticket.reschedule_reminder(now, due_is_new=True)
            ticket.save(update_fields=["reminder_revision"])
        if ticket.assignee and ticket.assignee != by:
            ticket.tell_assignee()
        return ticket

    def _defaults(self) -> dict:
        """Cleaned like what people say, so that a field that is required is not left out."""
        return {name: self.model._meta.get_field(name).get_default() for name in EDITABLE}
