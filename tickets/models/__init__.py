from .bulk_edit import BulkEdit
from .bulk_ticket import BulkOutcome, BulkTicket
from .comment import Comment
from .discussing import WrittenMeanwhile
from .editing import Conflict, Edit
from .importing import ImportedComment, ImportedTicket
from .list_settings import ListSettings
from .mail_delivery import MailDelivery, MailStatus
from .notification import Notification
from .notification_kind import NotificationKind
from .saved_view import SavedView, ViewChanged
from .team import Membership, Role, Team
from .ticket import Ticket
from .ticket_event import EventKind, TicketEvent
from .ticket_status import LIVE_STATUSES, TicketPriority, TicketStatus
from .user import User

__all__ = [
    "LIVE_STATUSES",
    "BulkEdit",
    "BulkOutcome",
    "BulkTicket",
    "Comment",
    "Conflict",
    "Edit",
    "EventKind",
    "ImportedComment",
    "ImportedTicket",
    "ListSettings",
    "MailDelivery",
    "MailStatus",
    "Membership",
    "Notification",
    "NotificationKind",
    "Role",
    "SavedView",
    "Team",
    "Ticket",
    "TicketEvent",
    "TicketPriority",
    "TicketStatus",
    "User",
    "ViewChanged",
    "WrittenMeanwhile",
]
