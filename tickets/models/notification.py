"""What a person is told in the application."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class NotificationKind(models.TextChoices):
    REMINDER = "reminder", _("reminder")
    ASSIGNED = "assigned", _("assigned to you")
    COMMENTED = "commented", _("new comment")
    EXPORT_READY = "export_ready", _("export ready")


class NotificationQuerySet(models.QuerySet):
    def of(self, user):
        return self.filter(user=user)

    def unread(self):
        return self.filter(read_at=None)


class Notification(models.Model):
    """``cause`` names what happened ("reminder:17:3"); one person is told of it once, however often
    a handler runs. ``text`` is data (a ticket's subject, an export's rows): the sentence
    around it is made when shown, in the reader's language."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notifications")
    ticket = models.ForeignKey(
        "tickets.Ticket", models.CASCADE, null=True, blank=True, related_name="notifications"
    )
    kind = models.CharField(_("kind"), max_length=20, choices=NotificationKind)
    text = models.TextField(_("text"), blank=True, default="")
    url = models.CharField(_("link"), max_length=200, blank=True, default="")
    cause = models.CharField(_("cause"), max_length=200)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    read_at = models.DateTimeField(_("read"), null=True, blank=True)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "cause"], name="one_notification_per_cause")
        ]
        indexes = [
            # Reader: the unread badge on every page.
            models.Index(
                fields=["user"], condition=models.Q(read_at=None), name="notification_unread"
            ),
            # Reader: the notifications page.
            models.Index(fields=["user", "-created_at", "-id"], name="notification_list"),
        ]

    def __str__(self):
        return self.text or self.get_kind_display()
