from .comment import Comment
from .notification import Notification, NotificationKind
from .team import Membership, Role, Team
from .ticket import Ticket, TicketPriority, TicketStatus
from .ticket_event import EventKind, TicketEvent
from .user import User

__all__ = [
    "Comment",
    "EventKind",
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
