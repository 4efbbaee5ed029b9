"""The states and priorities of a ticket."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class TicketStatus(models.TextChoices):
    OPEN = "open", _("open")
    PENDING = "pending", _("pending")
    ON_HOLD = "on_hold", _("on hold")
    RESOLVED = "resolved", _("resolved")
    CLOSED = "closed", _("closed")


class TicketPriority(models.TextChoices):
    LOW = "low", _("low")
    NORMAL = "normal", _("normal")
    HIGH = "high", _("high")
    URGENT = "urgent", _("urgent")


LIVE_STATUSES = [TicketStatus.OPEN, TicketStatus.PENDING, TicketStatus.ON_HOLD]
