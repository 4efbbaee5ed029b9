"""The mail server of a soak, and the check of what it received."""

import email
import random
from collections import Counter

from aiosmtpd.controller import Controller

from teamdesk.embedded import free_port


class MailServer:
    """A real SMTP server in the soak's own process. Sometimes it says: not now."""

    def __init__(self, seed: str):
        self.random = random.Random(seed)
        self.port = free_port()
        self.received: list[str] = []  # message ids
        self.refused = 0
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    async def handle_DATA(self, server, session, envelope):
        if self.random.random() < 0.03:
            self.refused += 1
            return "451 4.7.1 Greylisted, try again"
        self.received.append(email.message_from_bytes(envelope.content)["Message-ID"])
        return "250 2.0.0 Queued"

    # The check

    @property
    def repeated(self) -> int:
        """Mails beyond the first of each message id."""
        return len(self.received) - len(set(self.received))

    def breaches(self) -> list[str]:
        """Every person who was told was mailed too. A mail may be repeated only where an attempt
        ended between the server's yes and the record of it, and then under the same id."""
        from tickets.models import MailDelivery, Notification

        found, copies = [], Counter(self.received)
        told = set(Notification.objects.values_list("user_id", "cause"))
        deliveries = list(MailDelivery.objects.select_related("task"))
        mailed = Counter((each.recipient_id, each.cause) for each in deliveries)
        found += [f"lost: no mail to {user} about {cause}" for user, cause in told - mailed.keys()]
        found += [f"a mail, but nothing else, told {who} of it" for who in mailed.keys() - told]
        for delivery in deliveries:
            name, times = (
                f"mail {delivery.pk} of task {delivery.task_id}",
                copies[delivery.message_id],
            )
            if delivery.status != "sent":
                found.append(f"lost: {name} is {delivery.status} {delivery.reason}")
            elif not times:
                found.append(f"lost: {name} is said to be sent, the server has not seen it")
            interrupted = delivery.task.attempts.exclude(outcome="completed").count()
            if times > 1 + interrupted:
                found.append(f"doubled: {name} came {times} times in {interrupted + 1} attempts")
        unknown = copies.keys() - {delivery.message_id for delivery in deliveries}
        return found + [f"the mail {message_id} is of no delivery" for message_id in unknown]
