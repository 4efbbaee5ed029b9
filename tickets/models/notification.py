"""What a person is told in the application."""

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from .mail_delivery import MailDelivery
from .notification_kind import NotificationKind
from .team import Team
from .user import User

# created_at is left to the column's default: the database's clock.
_INSERT = """
INSERT INTO tickets_notification (user_id, ticket_id, kind, text, url, cause)
SELECT person, %s, %s, %s, %s, %s FROM unnest(%s::bigint[]) AS person ORDER BY person
ON CONFLICT (user_id, cause) DO NOTHING
RETURNING user_id
"""


class NotificationQuerySet(models.QuerySet):
    # Selections

    def visible_to(self, user):
        """Anybody's, without those of tickets that ``user`` may not see."""
        return self.filter(Q(ticket=None) | Q(ticket__team__in=Team.objects.visible_to(user)))

    def of(self, user):
        """The person's own, without those of tickets they may no longer see."""
        return self.visible_to(user).filter(user=user)

    def unread(self):
        return self.filter(read_at=None)

    # Verbs

    @transaction.atomic
    def notify(
        self,
        people,
        *,
        kind: str,
        cause: str,
        ticket=None,
        text: str = "",
        url: str = "",
        excerpt: str = "",
    ) -> int:
        """Tell each of ``people`` once, however often this is called for the same ``cause``: here
        in the application, and by mail whoever wants that. All of it in one transaction.

        Skipped: None, the inactive, and whoever may not see ``ticket`` now. ``excerpt`` is quoted
        in the mail. Returns how many were told by this call.
        """
        ids = {person.pk for person in people if person is not None}
        readers = ticket.team.readers() if ticket else User.objects.filter(is_active=True)
        told = list(readers.filter(pk__in=ids).values_list("pk", flat=True)) if ids else []
        if not told:
            return 0
        with connection.cursor() as cursor:
            cursor.execute(_INSERT, [ticket and ticket.pk, str(kind), text, url, cause, told])
            newly_told = [person for (person,) in cursor.fetchall()]
        MailDelivery.objects.enqueue(
            newly_told, kind=kind, cause=cause, ticket=ticket, text=text, url=url, excerpt=excerpt
        )
        return len(newly_told)

    def mark_read(self) -> int:
        """Returns how many were unread."""
        return self.unread().update(read_at=Now())


class Notification(models.Model):
    """``cause`` names what happened ("reminder:17:3"); one person is told of it once, however often
    a handler runs. ``text`` is data (a ticket's subject, an export's rows): the sentence
    around it is made when shown, in the reader's language."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="+",
        verbose_name=_("user"),
    )
    ticket = models.ForeignKey(
        "tickets.Ticket",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("ticket"),
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

    # Verbs

    def mark_read(self) -> bool:
        """True if it was unread."""
        was_unread = bool(Notification.objects.filter(pk=self.pk).mark_read())
        self.refresh_from_db(fields=["read_at"])
        return was_unread
