"""Taking in tickets from another system."""

from dataclasses import dataclass, field, fields
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction

from tasks.clock import database_now

from .comment import Comment
from .editable import EDITABLE, clean_changes, clean_text
from .team import Team
from .ticket_event import IMPORT_RULE, EventKind, TicketEvent
from .ticket_status import LIVE_STATUSES, TicketPriority, TicketStatus


@dataclass
class ImportedComment:
    body: str
    author_text: str
    at: datetime | None = None  # unknown: when the ticket was last touched


@dataclass
class ImportedTicket:
    """One ticket as another system had it. Raises ValidationError, by field, if it cannot be one.

    Times are aware, kept as given, and None where the other system does not know them. A live
    ticket has neither been resolved nor closed, whatever is given.
    """

    external_id: str
    subject: str
    description: str = ""
    status: str = TicketStatus.OPEN
    priority: str = TicketPriority.NORMAL
    requester_name: str = ""
    requester_email: str = ""
    tags: list[str] = field(default_factory=list)
    due_at: datetime | None = None
    created_at: datetime | None = None
    first_responded_at: datetime | None = None
    resolved_at: datetime | None = None
    closed_at: datetime | None = None
    comments: list[ImportedComment] = field(default_factory=list)

    def __post_init__(self):
        complaints = {}
        try:
            vars(self).update(clean_changes(self._editable()))
        except ValidationError as error:
            complaints |= error.message_dict
        try:
            self.external_id = clean_text(self.external_id, max_length=100, required=True)
        except ValidationError as error:
            complaints["external_id"] = error.messages
        try:
            for comment in self.comments:
                comment.body = clean_text(comment.body, required=True)
        except ValidationError as error:
            complaints["comments"] = error.messages
        if complaints:
            raise ValidationError(complaints)

    def _editable(self) -> dict:
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name in EDITABLE
        }

    def as_ticket(self, model, team, now):
        """Unknown times are filled in with the nearest known one, or with now: nothing was created
        after its first response, nor touched before its last known time."""
        known = [at for at in (self.first_responded_at, self.resolved_at, self.closed_at) if at]
        created_at = self.created_at or min(known, default=now)
        updated_at = max([*known, created_at]) if known or self.created_at else now
        is_live = self.status in LIVE_STATUSES
        is_closed = self.status == TicketStatus.CLOSED
        resolved_at = self.resolved_at or self.closed_at or updated_at
        return model(
            team=team,
            external_id=self.external_id,
            **self._editable(),
            created_at=created_at,
            updated_at=updated_at,
            first_responded_at=self.first_responded_at,
            resolved_at=None if is_live else resolved_at,
            closed_at=(self.closed_at or resolved_at) if is_closed else None,
        )


class TicketImporting:
    """Capability of Ticket's queryset: importing many."""

    @transaction.atomic
    def import_batch(self, team, imports: list[ImportedTicket]) -> int:
        """Add those whose external id the team does not have yet; on an error, none of them.

        History says ``imported``, by the system. Live tickets with a due date to come are reminded
        of it; old due dates are not, or a large import would be a storm. Returns how many were
        added.
        """
        # One import per team at a time: the second finds what the first added. People who open
        # tickets meanwhile do not wait.
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        ids = self.existing_external_ids(team, [each.external_id for each in imports])
        new = [each for each in imports if each.external_id not in ids]
        now = database_now()
        tickets = self.bulk_create([each.as_ticket(self.model, team, now) for each in new])
        TicketEvent.objects.bulk_create(
            TicketEvent(
                ticket=ticket,
                **TicketEvent.by(None, IMPORT_RULE),
                kind=EventKind.IMPORTED,
                new_value=ticket.external_id,
                new_text=ticket.subject,
                version=ticket.version,
                at=now,
            )
            for ticket in tickets
        )
        Comment.objects.bulk_create(
            Comment(
                ticket=ticket,
                author_text=comment.author_text[:200],
                body=comment.body,
                created_at=comment.at or ticket.updated_at,
            )
            for ticket, each in zip(tickets, new, strict=True)
            for comment in each.comments
        )
        for ticket in tickets:
            if ticket.due_at:
                ticket.reschedule_reminder(now, due_is_new=False, fast_path_wanted=False)
                ticket.save(update_fields=["reminder_revision"])
        return len(tickets)

    def existing_external_ids(self, team, external_ids) -> set[str]:
        known = self.filter(team=team, external_id__in=external_ids)
        return set(known.values_list("external_id", flat=True))
