"""The states of a mail, and how the MAIL handler moves it from one to the next."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tasks.clock import database_now
from tasks.errors import clean
from tasks.registry import RetryLater
from tasks.transactions import repeating


class MailStatus(models.TextChoices):
    QUEUED = "queued", _("queued")
    SENT = "sent", _("sent")
    SKIPPED = "skipped", _("skipped")
    FAILED = "failed", _("failed")


UNSETTLED = [MailStatus.QUEUED, MailStatus.FAILED]  # a retry of a failed one sends it


class MailSending:
    """Capability of MailDelivery: being sent, at most by one execution at a time."""

    @repeating
    def begin_sending(self, lease, seconds: float) -> bool:
        """The right to talk to the mail server, for ``seconds``. False: it is settled or deleted.

        Asked for under the lease: the renewal holds the ledger's row until the commit, so nobody
        recovers the task in between. Whoever has the right and lost its lease may still be in the
        middle of the call; the next one waits until that cannot be any more.

        Raises:
            LeaseLost: the task was taken.
            RetryLater: another execution may be sending it at this moment.
        """
        lease.renew()
        free = Q(sending_until=None) | Q(sending_until__lte=Now())
        changed = self._unsettled(free | Q(sending_by=lease.execution_id)).update(
            status=MailStatus.QUEUED,
            reason="",
            address=self.recipient.email,
            sending_by=lease.execution_id,
            sending_until=Now() + timedelta(seconds=seconds),
        )
        if changed:
            return True
        now = type(self).objects.filter(pk=self.pk).first()
        if now is None or now.is_settled:  # deleted with its recipient meanwhile, or done
            return False
        until = now.sending_until or database_now()  # or given back in this moment
        raise RetryLater(until, "Another execution may be sending it at this moment.")

    @repeating
    def record_sent(self, answer: str) -> bool:
        """The mail server took it. True if this call is the first to say so.

        No fence: that is a fact about the world, whoever has the lease by now.
        """
        sent = type(self).objects.filter(pk=self.pk).exclude(status=MailStatus.SENT)
        changed = sent.update(
            status=MailStatus.SENT,
            sent_at=Now(),
            answer=clean(answer),
            reason="",
            sending_by=None,
            sending_until=None,
        )
        return changed == 1

    def record_failure(self, lease, reason: str, *, is_final: bool) -> bool:
        """It was not sent: give the right back, with the reason. False: the right was another's."""
        changed = self._unsettled(Q(sending_by=lease.execution_id)).update(
            status=MailStatus.FAILED if is_final else MailStatus.QUEUED,
            reason=clean(reason),
            sending_by=None,
            sending_until=None,
        )
        return changed == 1

    def skip(self, reason: str) -> bool:
        """It is not to be sent. False: it was settled meanwhile."""
        changed = self._unsettled().update(
            status=MailStatus.SKIPPED, reason=reason, sending_by=None, sending_until=None
        )
        return changed == 1

    def _unsettled(self, *conditions):
        return type(self).objects.filter(*conditions, pk=self.pk, status__in=UNSETTLED)
