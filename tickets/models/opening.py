"""Opening a ticket."""

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils.translation import gettext as _

from .clock import database_now
from .editable import clean_changes
from .ticket_event import EventKind, TicketEvent
from .ticket_status import TicketPriority, TicketStatus


class TicketOpening:
    """Capability of Ticket's queryset: opening one."""

    @transaction.atomic
    def open(
        self,
        *,
        by,
        team,
        subject: str,
        description: str = "",
        priority: str = TicketPriority.NORMAL,
        status: str = TicketStatus.OPEN,
        requester_name: str = "",
        requester_email: str = "",
        assignee=None,
        tags=(),
        due_at=None,
        reason: str = "",
    ):
        """The new ticket, with its history and its reminder: all three or none.

        Args:
            by: the creator; None for the system, and then ``reason`` names the rule.
            due_at: aware; one that is already past reminds at once.

        Raises:
            PermissionDenied: the person may not work tickets of this team.
            ValidationError: by field.
        """
        values = clean_changes(
            {
                "team": team,
                "subject": subject,
                "description": description,
                "status": status,
                "priority": priority,
                "requester_name": requester_name,
                "requester_email": requester_email,
                "assignee": assignee,
                "tags": tags,
                "due_at": due_at,
            }
        )
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
