"""Writing on a ticket."""

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from tasks.clock import database_now

from .comment import Comment
from .editable import clean_text
from .notification import Notification
from .notification_kind import NotificationKind
from .ticket_event import EventKind, TicketEvent
from .ticket_status import TicketStatus


class WrittenMeanwhile(Exception):
    """Others wrote ``comments`` after the last one that the person has seen; oldest first."""

    def __init__(self, comments: list[Comment]):
        self.comments = comments
        super().__init__(comments)


class TicketDiscussing:
    """Capability of Ticket: being commented on."""

    @transaction.atomic
    def comment(
        self, *, by, body: str, is_public: bool = True, then: str = "", seen: int | None = None
    ) -> Comment:
        """A reply, or an internal note. The first reply is the first response.

        ``then`` may be "resolved": the comment resolves the ticket. ``seen`` is the id of the last
        comment that the person has seen, 0 for none; without it nobody is asked to read first.

        Assignee and creator are told, except the author. The comment itself changes no field, so
        the version stays: it is in nobody's way who is editing.

        Raises:
            PermissionDenied: the person may not work tickets of this team.
            ValidationError: for ``body``, or for ``status`` if ``then`` is another one.
            WrittenMeanwhile: another wrote after ``seen``; nothing is written.
        """
        ticket = self._locked()
        ticket._require_right(by, reason="")
        try:
            body = clean_text(body, required=True)
        except ValidationError as error:
            raise ValidationError({"body": error.messages}) from error
        if then not in ("", TicketStatus.RESOLVED):
            text = _("“%(value)s” is not one of the choices.") % {"value": str(then)[:50]}
            raise ValidationError({"status": [text]})
        if seen is not None:
            # Ids of one ticket's comments grow in the order of writing: its lock is held meanwhile.
            newer = ticket.comments.filter(pk__gt=seen).exclude(author=by).select_related("author")
            if unread := list(newer):
                raise WrittenMeanwhile(unread)
        now = database_now()
        comment = ticket.comments.create(
            author=by,
            author_text=by.display_name[:200],
            body=body,
            is_public=is_public,
            created_at=now,
        )
        TicketEvent.objects.create(
            ticket=ticket,
            **TicketEvent.by(by),
            kind=EventKind.COMMENTED,
            new_value={"comment": comment.pk, "is_public": is_public},
            new_text=body,
            version=ticket.version,
            at=now,
        )
        ticket.updated_at = now
        if is_public and ticket.first_responded_at is None:
            ticket.first_responded_at = now
        ticket.save(update_fields=["updated_at", "first_responded_at"])
        Notification.objects.notify(
            {ticket.assignee, ticket.creator} - {by},
            kind=NotificationKind.COMMENTED,
            cause=f"comment:{comment.pk}",
            ticket=ticket,
            text=ticket.subject,
            excerpt=f"{by.display_name}: {body}",
        )
        if then:
            ticket.resolve(by=by)
        self._become(ticket)
        return comment
