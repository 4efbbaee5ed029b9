"""What people are told of, in the application and by mail."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class NotificationKind(models.TextChoices):
    """Each has a field of ``User`` that says whether it is mailed too: see ``mail_field``."""

    REMINDER = "reminder", _("reminder")
    ASSIGNED = "assigned", _("assigned to you")
    COMMENTED = "commented", _("new comment")
    EXPORT_READY = "export_ready", _("export ready")
    EXPORT_PAUSED = "export_paused", _("scheduled export paused")


def mail_field(kind: str) -> str:
    """The name of the preference on ``User``: is this also told by mail?"""
    return f"mail_{kind}"
