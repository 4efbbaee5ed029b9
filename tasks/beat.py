"""Celery beat's scheduler: runs the dispatcher's round in beat's process, publishes nothing."""

import logging
import time

from celery.beat import Scheduler
from django.conf import settings
from django.db import close_old_connections
from django.db.backends.signals import connection_created

from tasks import patience
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.round_lock import RoundInProgress
from tasks.transactions import set_session_limits

logger = logging.getLogger(__name__)


class RoundScheduler(Scheduler):
    """Several beats may run: the round's lock lets one work at a time."""

    def setup_schedule(self):
        connection_created.connect(set_session_limits)
        patience.wait_as_long_as_statements_may_take()

    def tick(self, *args, **kwargs) -> float:
        """One round. Returns the seconds until the next."""
        started = time.monotonic()
        close_old_connections()
        try:
            dispatch_once()
        except RoundInProgress:
            logger.debug("Another beat is running a round")
        except RoundFault as fault:
            logger.error("Round incomplete: %s", fault)
        except Exception:  # whatever it was, beat lives to try the next round
            logger.exception("Round failed")
        return max(0.01, settings.TEAMDESK_ROUND_SECONDS - (time.monotonic() - started))

    def should_sync(self):
        return False

    def close(self):
        """Nothing is stored: the ledger is the schedule."""
