"""Lets one round of the dispatcher run at a time, among any number of processes and machines."""

import logging
import time
from contextlib import contextmanager, suppress

from django.db import Error, connection

from tasks.errors import describe

logger = logging.getLogger(__name__)

ROUND_LOCK = 0x7EA3DE5C  # any number that no other advisory lock of this database uses
LOCK_IDLE_LIMIT = "30s"  # a frozen process loses the lock after this

# Also begins the transaction: one round trip for what would be two.
_TRY = (
    "SELECT set_config('idle_in_transaction_session_timeout', %s, true),"
    " pg_try_advisory_xact_lock(%s)"
)


class RoundInProgress(Exception):
    """Another process is running a round; nothing was done."""


class RoundLock:
    """The advisory lock, on a connection of its own, in a transaction that PostgreSQL ends when
    this process freezes. The connection is kept from one round to the next until ``close``: a new
    one costs more than all that a quiet round asks. One thread's."""

    def __init__(self):
        self._connection = None

    @contextmanager
    def held(self, wait_seconds: float = 0):
        """Raises RoundInProgress if another process holds it for longer."""
        deadline = time.monotonic() + wait_seconds
        try:
            while not self._is_taken():
                if time.monotonic() >= deadline:
                    raise RoundInProgress("Another round is in progress.")
                time.sleep(0.1)
            yield
        finally:
            self._give_back()

    def close(self) -> None:
        if self._connection is not None:
            with suppress(Error):
                self._connection.close()
            self._connection = None

    def _is_taken(self) -> bool:
        if self._connection is not None:
            try:
                return self._try()
            except Error as error:  # PostgreSQL was restarted, or ended what stood still
                logger.warning("The lock's connection is replaced: %s", describe(error))
                self.close()
        self._connection = connection.copy()
        self._connection.set_autocommit(False)
        return self._try()

    def _try(self) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(_TRY, [LOCK_IDLE_LIMIT, ROUND_LOCK])
            return cursor.fetchone()[1]

    def _give_back(self) -> None:
        """Closing alone leaves the lock until PostgreSQL notices; the next round may be sooner."""
        if self._connection is None:
            return
        try:
            self._connection.rollback()
        except Error:
            logger.warning("The round outlived its lock; its writes were guarded all the same")
            self.close()


@contextmanager
def only_round(wait_seconds: float):
    """For one round, with nothing kept. Raises RoundInProgress."""
    lock = RoundLock()
    try:
        with lock.held(wait_seconds):
            yield
    finally:
        lock.close()
