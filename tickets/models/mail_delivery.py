"""What a person is told by mail: one row per recipient, from the event to the server's answer."""

import uuid

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tasks.models import BackgroundTask
from tickets.mail import addresses

from .mail_sending import UNSETTLED, MailSending, MailStatus
from .notification_kind import NotificationKind, mail_field
from .team import Team
from .user import User

MAIL = "MAIL"
EXCERPT_LIMIT = 2_000  # characters


class Because(models.TextChoices):
    """Why this person is told: what the mail says at its end."""

    ASSIGNEE = "assignee", _("assignee of the ticket")
    CREATOR = "creator", _("opened the ticket")
    REQUESTER = "requester", _("asked for the export")
    READER = "reader", _("member of the ticket's team")

    @classmethod
    def of(cls, person_id: int, ticket) -> "Because":
        if ticket is None:
            return cls.REQUESTER
        if person_id == ticket.assignee_id:
            return cls.ASSIGNEE
        return cls.CREATOR if person_id == ticket.creator_id else cls.READER


class MailDeliveryQuerySet(models.QuerySet):
    # Selections

    def visible_to(self, user):
        """Anybody's, without those about tickets that ``user`` may not see."""
        return self.filter(Q(ticket=None) | Q(ticket__team__in=Team.objects.visible_to(user)))

    # Verbs

    @transaction.atomic
    def enqueue(
        self,
        people: list[int],
        *,
        kind: str,
        cause: str,
        ticket=None,
        text: str = "",
        url: str = "",
        excerpt: str = "",
    ) -> int:
        """A delivery and its MAIL task for each who wants this by mail and has an address: in the
        caller's transaction, so that no event is half told. Returns how many."""
        wanted = {mail_field(kind): True}
        if not (people and settings.TEAMDESK_MAIL and hasattr(User, mail_field(kind))):
            return 0
        recipients = User.objects.filter(pk__in=people, is_active=True, **wanted).exclude(email="")
        deliveries = self.bulk_create(
            self.model(
                recipient_id=pk,
                address=address,
                kind=kind,
                cause=cause,
                ticket=ticket,
                because=Because.of(pk, ticket),
                text=text,
                url=url,
                excerpt=excerpt[:EXCERPT_LIMIT],
                message_id=f"<{uuid.uuid4()}@{addresses.domain()}>",
            )
            for pk, address in recipients.order_by("pk").values_list("pk", "email")
        )
        for delivery in deliveries:
            delivery.task = BackgroundTask.objects.enqueue(
                MAIL,
                payload={"delivery": delivery.pk},
                ticket=ticket,
                team=ticket and ticket.team_id,
                owner=delivery.recipient_id,
            )
        self.bulk_update(deliveries, ["task"])
        return len(deliveries)


class MailDelivery(MailSending, models.Model):
    """One mail to one person. The task of kind MAIL sends it; this says what became of it.

    ``text``, ``url`` and ``excerpt`` are data: the words around them are made when it is sent, in
    the recipient's language. ``message_id`` is fixed, so that a mail that had to be sent twice is
    one mail for programs that look at it. ``sending_by`` is the execution that may talk to the mail
    server now, until ``sending_until``; nobody else may meanwhile, even if it lost its lease.
    """

    recipient = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("recipient")
    )
    # As it was at the event; as it is, once it is sent.
    address = models.CharField(_("address"), max_length=254)
    kind = models.CharField(_("kind"), max_length=20, choices=NotificationKind)
    cause = models.CharField(_("cause"), max_length=200)
    because = models.CharField(_("told as"), max_length=10, choices=Because)
    ticket = models.ForeignKey(
        "tickets.Ticket",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("ticket"),
    )
    text = models.TextField(_("text"), blank=True, default="")
    url = models.CharField(_("link"), max_length=200, blank=True, default="")
    excerpt = models.TextField(_("excerpt"), blank=True, default="")
    message_id = models.CharField(_("message id"), max_length=320, unique=True)
    status = models.CharField(
        _("status"), max_length=10, choices=MailStatus, default=MailStatus.QUEUED
    )
    reason = models.TextField(_("reason"), blank=True, default="")
    answer = models.TextField(_("server's answer"), blank=True, default="")
    sending_by = models.UUIDField(_("being sent by execution"), null=True, blank=True)
    sending_until = models.DateTimeField(_("being sent until"), null=True, blank=True)
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    # Null only while both are being written. The ledger forgets old tasks, and these with them.
    task = models.OneToOneField(
        "tasks.BackgroundTask",
        models.CASCADE,
        null=True,
        related_name="mail_delivery",
        verbose_name=_("background task"),
    )

    objects = MailDeliveryQuerySet.as_manager()

    class Meta:
        verbose_name = _("mail")
        verbose_name_plural = _("mails")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["recipient", "cause"], name="one_mail_per_recipient_and_cause"
            ),
            models.CheckConstraint(
                condition=Q(status=MailStatus.SENT, sent_at__isnull=False)
                | (~Q(status=MailStatus.SENT) & Q(sent_at__isnull=True)),
                name="sent_means_sent_at_is_set",
            ),
            models.CheckConstraint(
                condition=Q(sending_by__isnull=True, sending_until__isnull=True)
                | Q(sending_by__isnull=False, sending_until__isnull=False),
                name="being_sent_means_by_whom_and_how_long",
            ),
        ]

    def __str__(self):
        return f"{self.get_kind_display()} · {self.address}"

    # Questions

    @property
    def is_settled(self) -> bool:
        """Sent, or found to be not wanted: nothing is to be done."""
        return self.status not in UNSETTLED

    def reason_to_skip(self) -> str:
        """Why it must not be sent now, or nothing. Rights and wishes are those of this moment."""
        if not self.recipient.is_active:
            return "The recipient's account is not active any more."
        if not self.recipient.email:
            return "The recipient has no address any more."
        if not self.recipient.wants_mail(self.kind):
            return "The recipient does not want mail about this any more."
        if self.because == Because.REQUESTER:
            return ""
        tickets = self._meta.get_field("ticket").related_model.objects
        if not tickets.visible_to(self.recipient).filter(pk=self.ticket_id).exists():
            return "The ticket is gone, or the recipient may not see it any more."
        return ""
