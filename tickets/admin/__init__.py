from .mail_delivery import MailDeliveryAdmin
from .notification import NotificationAdmin
from .team import TeamAdmin
from .ticket import TicketAdmin
from .user import UserAdmin

__all__ = ["MailDeliveryAdmin", "NotificationAdmin", "TeamAdmin", "TicketAdmin", "UserAdmin"]
