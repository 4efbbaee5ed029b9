from .notification import NotificationAdmin
from .team import TeamAdmin
from .ticket import TicketAdmin
from .user import UserAdmin

__all__ = ["NotificationAdmin", "TeamAdmin", "TicketAdmin", "UserAdmin"]
