from .comment import Comment
from .editing import Conflict, Edit
from .importing import ImportedComment, ImportedTicket
from .notification import Notification, NotificationKind
from .team import Membership, Role, Team
from .ticket import Ticket
from .ticket_event import EventKind, TicketEvent
from .ticket_status import LIVE_STATUSES, TicketPriority, TicketStatus
from .user import User

__all__ = [
    "LIVE_STATUSES",
    "Comment",
    "Conflict",
    "Edit",
    "EventKind",
    "ImportedComment",
    "ImportedTicket",
    "Membership",
    "Notification",
    "NotificationKind",
    "Role",
    "Team",
    "Ticket",
    "TicketEvent",
    "TicketPriority",
    "TicketStatus",
    "User",
]
