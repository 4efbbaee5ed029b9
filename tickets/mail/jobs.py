"""The MAIL handler: one mail to one person."""

import contextlib
import time

from django.conf import settings
from django.db import DatabaseError

from tasks.errors import describe
from tasks.registry import SHORT, PermanentFailure, handles
from tickets.mail.letter import Letter
from tickets.mail.posting import Posting
from tickets.mail.smtp import SECONDS
from tickets.models import MailDelivery
from tickets.models.mail_delivery import MAIL


@handles(MAIL, queue=SHORT, time_limit=60)
def send_mail(task, lease):
    """The mail leaves here, outside any transaction, and is recorded as sent at once.

    What is not closed, because nothing can close it: an execution that ends between the server's
    yes and that record. The mail is then sent again, with the same Message-ID.
    """
    # Shorter than the lease: whoever takes the task over finds that the call has ended.
    seconds = min(SECONDS, settings.TEAMDESK_LEASE_SECONDS)
    until = time.monotonic() + seconds
    deliveries = MailDelivery.objects.select_related("recipient", "ticket__team")
    delivery = deliveries.filter(pk=task.payload.get("delivery")).first()
    if delivery is None or delivery.is_settled:  # deleted with its recipient, or done
        return None
    if reason := delivery.reason_to_skip():
        return lambda: delivery.skip(reason)
    if delivery.begin_sending(lease, seconds):
        try:
            _send(delivery, until)
        except BaseException as error:
            is_final = isinstance(error, PermanentFailure) or task.attempt >= task.max_attempts
            reason = str(error) if isinstance(error, PermanentFailure) else describe(error)
            with contextlib.suppress(DatabaseError):  # the right to send ends by itself, too
                delivery.record_failure(lease, reason, is_final=is_final)
            raise
    return None


def _send(delivery: MailDelivery, until: float) -> None:
    letter = Letter(delivery)
    posting = Posting(until)
    try:
        try:
            posting.send(letter)
        finally:
            # Also when the process is being ended at this moment: the server's yes is a fact.
            if posting.answer is not None:
                delivery.record_sent(posting.answer)
    finally:
        posting.close()
