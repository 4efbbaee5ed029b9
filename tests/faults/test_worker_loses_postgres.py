"""PostgreSQL falls silent for one worker, in the middle of its work.

Its lease runs out, another worker on a connection that is well does the task, and the first one,
once it is heard again, can change nothing.
"""

import pytest
from django.db import OperationalError, close_old_connections, connection

from tasks import transactions
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.patience import PatientConnection
from tasks.worker import run_job
from tests.faults.proxy import through
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue

PLACES = [
    pytest.param(b"INSERT INTO test_notes", id="before its effect"),
    pytest.param(b"tasks_backgroundtask", id="between its effect and its finish"),
    pytest.param(b"tasks_taskattempt", id="before its attempt is closed"),
    pytest.param(b"COMMIT", id="before its commit"),
]


@pytest.fixture
def first(actor, postgres_proxy, monkeypatch):
    """The worker whose connections go through the proxy.

    PostgreSQL ends a session that stands still within a transaction: otherwise the rows that the
    silent worker has locked would stay so.
    """
    monkeypatch.setitem(transactions._LIMITS, "idle_in_transaction_session_timeout", "300ms")
    monkeypatch.setattr(transactions, "sleep", lambda seconds: None)
    first = actor("first")
    first.do(through, postgres_proxy)
    first.do(lambda: transactions.set_session_limits(connection=connection))
    return first


@pytest.fixture
def another_takes_over(time_passes, wait_until, reread):
    """Another worker claims the task as soon as the silent one's lease has run out."""

    def take_over(task):
        time_passes(121)

        def recovered():
            dispatch_once()
            return reread(task).status == TaskStatus.WAITING

        wait_until(recovered, "its lease has run out")
        return Lease.claim(task.pk, 0, "another")

    return take_over


def is_as_the_other_left_it(task, notes):
    task.refresh_from_db()
    outcomes = list(task.attempts.values_list("outcome", flat=True))
    return (task.status, outcomes, notes(task)) == (
        TaskStatus.COMPLETED,
        ["lease_expired", "completed"],
        1,
    )


@pytest.mark.parametrize("place", PLACES)
def test_a_finish_that_is_heard_too_late_changes_nothing(
    first, postgres_proxy, notes, place, wait_until, another_takes_over
):
    task = enqueue("NOTE")
    lease = first.do(Lease.claim, task.pk, 0, "first")
    postgres_proxy.silence_at(place)
    finish = first.start(lease.complete, lambda: write_note(lease.task))
    wait_until(postgres_proxy.is_silent)
    another = another_takes_over(task)
    assert not finish.done()
    postgres_proxy.heal()
    with pytest.raises(LeaseLost):
        finish.result(60)
    assert notes(task) == 0
    another.complete(lambda: write_note(another.task))
    assert is_as_the_other_left_it(task, notes)


def test_who_gave_up_waiting_can_change_nothing_afterwards(
    first, postgres_proxy, notes, another_takes_over, monkeypatch
):
    monkeypatch.setattr(PatientConnection, "patience", 0.3)
    task = enqueue("NOTE")
    lease = first.do(Lease.claim, task.pk, 0, "first")
    postgres_proxy.silence_at(b"COMMIT")
    finish = first.start(lease.complete, lambda: write_note(lease.task))
    with pytest.raises(OperationalError):
        finish.result(60)
    another = another_takes_over(task)
    postgres_proxy.heal()
    first.do(close_old_connections)
    for late in (
        lambda: lease.complete(lambda: write_note(lease.task)),
        lambda: lease.fail_attempt(ValueError("late")),
        lambda: lease.release(),
        lambda: lease.renew(),
        lambda: lease.progress(1, 2),
    ):
        with pytest.raises(LeaseLost):
            first.do(late)
    another.complete(lambda: write_note(another.task))
    assert is_as_the_other_left_it(task, notes)


def test_a_claim_that_never_arrives_costs_nothing(first, postgres_proxy, notes, monkeypatch):
    monkeypatch.setattr(PatientConnection, "patience", 0.3)
    task = enqueue("NOTE")
    postgres_proxy.silence_at(b"SET status = 'RUNNING'")  # one statement, a transaction by itself
    job = first.start(run_job, task.pk, 0)
    assert job.result(60) is None
    postgres_proxy.cut()
    postgres_proxy.heal()
    dispatch_once()
    first.do(close_old_connections)
    assert first.do(run_job, task.pk, 0) == TaskStatus.COMPLETED
    task.refresh_from_db()
    assert (task.attempt, notes(task)) == (1, 1)


@pytest.mark.processes
@pytest.mark.timeout(400)
def test_a_real_worker_is_free_again_when_it_heals(
    processes, postgres_proxy, notes, wait_until, time_passes, reread, settings
):
    settings.TEAMDESK_RECHECK_SECONDS = 1
    first = processes.worker(
        DATABASE_URL=f"{postgres_proxy.url}&connect_timeout=2", TEAMDESK_STATEMENT_SECONDS="1"
    )
    task = enqueue("SLOW", payload={"seconds": 3})
    dispatch_once()
    wait_until(lambda: reread(task).status == TaskStatus.RUNNING)
    postgres_proxy.silence()
    second = processes.worker()
    time_passes(121)
    assert dispatch_once().recovered == 1

    def done(task):
        dispatch_once()  # the first one takes messages too, and loses them
        return reread(task).status == TaskStatus.COMPLETED

    wait_until(lambda: done(task), "the other one does it", 90)
    second.stop()
    wait_until(lambda: "attempt 1 failed" in first.output, "the first one gives up", 120)
    postgres_proxy.heal()
    last = enqueue("NOTE")
    wait_until(lambda: done(last), "the first one works again", 90)
    assert first.is_running()
    assert is_as_the_other_left_it(task, notes)
