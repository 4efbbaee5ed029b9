"""Transactions of dispatcher and workers: bounded in time, repeated where that is asked for."""

import functools

from django.db import OperationalError, connection, transaction

_SERIALIZATION_FAILURE, _DEADLOCK = "40001", "40P01"
_TRIES = 5

_LIMITS = {
    "lock_timeout": "5s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
}


def set_session_limits(sender=None, connection=None, **kwargs) -> None:
    """Receiver of ``connection_created`` in dispatcher and worker processes."""
    with connection.cursor() as cursor:
        for name, value in _LIMITS.items():
            cursor.execute("SELECT set_config(%s, %s, false)", [name, value])


def repeating(work):
    """Decorator: run ``work`` in a transaction; again on a deadlock, a serialization failure or a
    lost connection, at most five times.

    For the task side only: its writes are guarded, so a repetition is harmless. Business
    transactions let these errors reach their caller.
    """

    @functools.wraps(work)
    def repeat(*args, **kwargs):
        for attempt in range(1, _TRIES + 1):
            try:
                with transaction.atomic():
                    return work(*args, **kwargs)
            except OperationalError as error:
                if attempt == _TRIES or connection.in_atomic_block or not _may_repeat(error):
                    raise
        raise AssertionError("unreachable")

    return repeat


def _may_repeat(error: OperationalError) -> bool:
    if getattr(error.__cause__, "sqlstate", None) in (_SERIALIZATION_FAILURE, _DEADLOCK):
        return True
    lost = connection.connection is None or connection.connection.closed
    if lost:
        connection.close()  # the next use opens a new one
    return lost
