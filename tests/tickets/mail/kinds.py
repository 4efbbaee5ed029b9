"""For real workers (``celery -I``): one that is killed between the server's yes and its record."""

import os
import signal
from pathlib import Path

from tickets.models import MailDelivery

_record_sent = MailDelivery.record_sent


def die_once(delivery, answer):
    """The file that ``TEST_DIE_ONCE`` names is there: then it goes, and so does this process."""
    flag = os.environ.get("TEST_DIE_ONCE")
    if flag and Path(flag).exists():
        Path(flag).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return _record_sent(delivery, answer)


MailDelivery.record_sent = die_once
