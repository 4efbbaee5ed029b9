"""The lock of a process that runs round after round: its connection is kept between them."""

import pytest
from django.db import connection

from tasks.dispatcher import dispatch_once
from tasks.round_lock import RoundInProgress, RoundLock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lock():
    lock = RoundLock()
    yield lock
    lock.close()


@pytest.fixture
def round_with(lock):
    """``round_with()``: a round; returns what PostgreSQL calls the session that held its lock."""

    def run():
        dispatch_once(lock=lock)
        return lock._connection.connection.info.backend_pid

    return run


def asked(question: str, *values):
    with connection.cursor() as cursor:
        cursor.execute(question, values)
        return cursor.fetchone()[0]


def test_its_connection_serves_the_next_round_too(round_with):
    assert round_with() == round_with()


def test_between_rounds_it_holds_nothing_and_is_in_no_transaction(round_with):
    session = round_with()
    assert asked("SELECT state FROM pg_stat_activity WHERE pid = %s", session) == "idle"
    assert asked("SELECT count(*) FROM pg_locks WHERE pid = %s", session) == 0
    dispatch_once()  # any other process's


def test_a_session_that_postgres_ended_meanwhile_costs_no_round(round_with):
    session = round_with()
    assert asked("SELECT pg_terminate_backend(%s, 10000)", session)
    assert round_with() != session


def test_a_session_that_ends_during_the_round_is_replaced_in_the_next(lock, round_with):
    with lock.held():
        session = lock._connection.connection.info.backend_pid
        assert asked("SELECT pg_terminate_backend(%s, 10000)", session)
    assert lock._connection is None
    assert round_with() != session


def test_a_refused_lock_leaves_its_connection_usable(lock, round_with):
    other = RoundLock()
    with other.held(), pytest.raises(RoundInProgress):
        round_with()
    other.close()
    assert round_with()


def test_a_failure_within_the_round_gives_the_lock_back(lock, round_with):
    with pytest.raises(ValueError, match="of the round"), lock.held():
        raise ValueError("of the round")
    with RoundLock().held():
        pass
    assert round_with()
