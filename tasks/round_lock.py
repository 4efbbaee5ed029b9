"""Lets one round of the dispatcher run at a time, among any number of processes and machines."""

import logging
import time
from contextlib import closing, contextmanager

from django.db import DatabaseError, connection

logger = logging.getLogger(__name__)

ROUND_LOCK = 0x7EA3DE5C  # any number that no other advisory lock of this database uses
LOCK_IDLE_LIMIT = "30s"  # a frozen process loses the lock after this


class RoundInProgress(Exception):
    """Another process is running a round; nothing was done."""


@contextmanager
def only_round(wait_seconds: float):
    """Holds the advisory lock on a connection of its own, in a transaction that PostgreSQL ends
    when this process freezes."""
    lock = connection.copy()
    deadline = time.monotonic() + wait_seconds
    try:
        lock.set_autocommit(False)
        with lock.cursor() as cursor:
            while True:
                cursor.execute(
                    "SELECT set_config('idle_in_transaction_session_timeout', %s, true),"
                    " pg_try_advisory_xact_lock(%s)",
                    [LOCK_IDLE_LIMIT, ROUND_LOCK],
                )
                if cursor.fetchone()[1]:
                    break
                if time.monotonic() >= deadline:
                    raise RoundInProgress("Another round is in progress.")
                time.sleep(0.1)
        yield
    finally:
        try:
            # Closing alone leaves the lock until PostgreSQL notices; the next round may be sooner.
            with closing(lock):
                lock.rollback()
        except DatabaseError:
            logger.warning("The round outlived its lock; its writes were guarded all the same")
