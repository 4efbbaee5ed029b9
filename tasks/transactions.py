"""Transactions of dispatcher and workers: bounded in time, repeated where that is asked for."""

import functools
import random
from contextlib import contextmanager, nullcontext
from time import sleep

import psycopg
from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction

_SERIALIZATION_FAILURE, _DEADLOCK, _LOCK_NOT_AVAILABLE = "40001", "40P01", "55P03"
# What a lost connection raises: InternalError when PostgreSQL ended a session that stood still
# within a transaction, as a frozen process finds when it wakes.
LOST_OR_IN_CONFLICT = (OperationalError, InterfaceError, InternalError)
_TRIES, _LOCK_TRIES = 5, 3
# What PostgreSQL says as it goes, ends a session or comes back. Without a code: it said nothing.
_GONE = {None, "57P01", "57P02", "57P03", "25P03"}
# Before each repetition after a lost connection: a restart of PostgreSQL takes a moment, and giving
# up on a finish within it would cost the whole attempt.
_PAUSES = (0.2, 1, 3, 5)

_LIMITS = {"lock_timeout": "5s", "idle_in_transaction_session_timeout": "60s"}


def set_session_limits(sender=None, connection=None, **kwargs) -> None:
    """Receiver of ``connection_created`` in dispatcher and worker processes."""
    statement = f"{settings.TEAMDESK_STATEMENT_SECONDS * 1000:.0f}ms"
    limits = _LIMITS | {"statement_timeout": statement}
    each = ", ".join(["set_config(%s, %s, false)"] * len(limits))  # one round trip for all
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {each}", [part for limit in limits.items() for part in limit])


@contextmanager
def answering_within(milliseconds: int):
    """A transaction for questions of a page or a probe: PostgreSQL ends each statement in it that
    takes longer, with a DatabaseError. An ever longer ledger must not slow those who look at it."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(milliseconds)])
        yield


def repeating(work=None, *, in_transaction: bool = True, lock_timeouts: bool = False):
    """Decorator: run ``work`` in a transaction; again on a deadlock, a serialization failure or a
    lost connection, at most five times.

    For the task side only: its writes are guarded, so a repetition is harmless. Business
    transactions let these errors reach their caller.

    Args:
        in_transaction: False for work of one statement, which is a transaction by itself.
        lock_timeouts: again also when a lock was not to be had in time, at most three times: giving
            up a finish costs a whole attempt, waiting for a claim only holds up others.
    """
    if work is None:
        return functools.partial(
            repeating, in_transaction=in_transaction, lock_timeouts=lock_timeouts
        )

    @functools.wraps(work)
    def repeat(*args, **kwargs):
        for attempt in range(1, _TRIES + 1):
            used = None
            try:
                with transaction.atomic() if in_transaction else nullcontext():
                    connection.ensure_connection()
                    used = connection.connection
                    return work(*args, **kwargs)
            except LOST_OR_IN_CONFLICT as error:
                if attempt == _TRIES or connection.in_atomic_block:
                    raise
                if _is_lost(used):
                    connection.close()  # the next use opens a new one
                    sleep(_PAUSES[attempt - 1])
                elif _is_conflict(error):
                    # Apart from each other, or the same ones meet again.
                    sleep(random.uniform(0, 0.01 * 4**attempt))  # noqa: S311  no secret
                elif not (lock_timeouts and attempt < _LOCK_TRIES and _is_lock_timeout(error)):
                    raise
        raise AssertionError("unreachable")

    return repeat


def is_lost_database(error: BaseException) -> bool:
    """Was the database out of reach, rather than unwilling?"""
    return _is_said_by_database(error) and (
        error.__cause__.sqlstate in _GONE or error.__cause__.sqlstate.startswith("08")
    )


def is_nobodys_failure(error: BaseException) -> bool:
    """Out of reach, or in conflict with another transaction: the same again may well succeed."""
    return is_lost_database(error) or (_is_said_by_database(error) and _is_conflict(error))


def _is_said_by_database(error: BaseException) -> bool:
    return isinstance(error, OperationalError | InternalError) and isinstance(
        error.__cause__, psycopg.Error
    )


def _is_conflict(error: BaseException) -> bool:
    return _state(error) in (_SERIALIZATION_FAILURE, _DEADLOCK)


def _is_lock_timeout(error: BaseException) -> bool:
    return _state(error) == _LOCK_NOT_AVAILABLE


def _state(error: BaseException) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


def _is_lost(used) -> bool:
    # Where PostgreSQL answers, Django has connected anew already, as it left the transaction.
    return used is None or used.closed or used is not connection.connection
