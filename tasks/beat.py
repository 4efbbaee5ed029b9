"""Celery beat's scheduler: runs the dispatcher's round in beat's process, publishes nothing."""

import time

from celery.beat import Scheduler
from django.conf import settings
from django.db.backends.signals import connection_created

from tasks import patience
from tasks.round_lock import RoundLock
from tasks.rounds import attempt_round
from tasks.transactions import set_session_limits


class RoundScheduler(Scheduler):
    """Several beats may run: the round's lock lets one work at a time."""

    def setup_schedule(self):
        connection_created.connect(set_session_limits)
        patience.wait_as_long_as_statements_may_take()
        self.lock = RoundLock()

    def tick(self, *args, **kwargs) -> float:
        """One round. Returns the seconds until the next."""
        started = time.monotonic()
        attempt_round(self.lock)
        return max(0.01, settings.TEAMDESK_ROUND_SECONDS - (time.monotonic() - started))

    def should_sync(self):
        return False

    def close(self):
        """Nothing is stored: the ledger is the schedule."""
        self.lock.close()
