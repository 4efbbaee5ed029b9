import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from tasks import registry
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.registry import Kind, PermanentFailure, RetryLater
from tasks.renewal import kept_alive
from tasks.worker import run_job
from tests.tasks.kinds import write_note

enqueue = BackgroundTask.objects.enqueue
claim = Lease.claim


@pytest.fixture
def task(notes):
    return enqueue("NOTE")


@pytest.fixture
def handler(monkeypatch):
    """``handler(function, **policy)``: what kind NOTE does in this test."""

    def install(function, **policy):
        monkeypatch.setitem(registry._kinds, "NOTE", Kind("NOTE", function, **policy))

    return install


def seconds_to_wait(task):
    """From the end of its last attempt, which one statement wrote with the time it is due."""
    task.refresh_from_db()
    return (task.run_at - task.updated_at).total_seconds()


def make_due(task):
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=Now())


def test_a_claim_starts_an_attempt(task):
    lease = claim(task.pk, 0, "short@here")
    task.refresh_from_db()
    assert (task.status, task.attempt) == (TaskStatus.RUNNING, 1)
    assert task.execution_id == lease.execution_id
    attempt = task.attempts.get()
    assert (attempt.attempt, attempt.worker, attempt.outcome) == (1, "short@here", "")


@pytest.mark.parametrize("run", [1, 7])
def test_a_claim_of_another_run_is_refused(task, run):
    assert claim(task.pk, run) is None


def test_a_claim_before_its_time_is_refused(notes):
    task = enqueue("NOTE", run_at=datetime.now(UTC) + timedelta(hours=1))
    assert claim(task.pk, 0) is None


def test_the_effect_and_completed_are_one_transaction(task, notes):
    lease = claim(task.pk, 0)

    def effect():
        write_note(task)
        assert connection.in_atomic_block
        raise RuntimeError("after the write")

    with pytest.raises(RuntimeError):
        lease.complete(effect)
    task.refresh_from_db()
    assert (task.status, notes(task)) == (TaskStatus.RUNNING, 0)
    lease.complete(lambda: write_note(task))
    task.refresh_from_db()
    assert (task.status, notes(task)) == (TaskStatus.COMPLETED, 1)
    assert task.finished_at and task.execution_id is None and task.expires_at is None


def test_a_result_expires_by_its_kinds_policy(task, handler):
    handler(lambda task, lease: None, result_ttl=lambda: timedelta(hours=24))
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED
    task.refresh_from_db()
    assert task.expires_at - task.finished_at == timedelta(hours=24)


def test_failures_climb_the_ladder_and_end_failed(task, handler):
    def fail(task, lease):
        raise ConnectionError("no route to the printer")

    handler(fail, ladder=(60, 300))
    for wait in (60, 300):
        assert run_job(task.pk, 0) == TaskStatus.WAITING
        assert seconds_to_wait(task) == wait
        assert task.dispatched_at is None
        make_due(task)
    assert run_job(task.pk, 0) == TaskStatus.FAILED
    task.refresh_from_db()
    assert task.last_error == "ConnectionError: no route to the printer"
    assert task.attempt == 3
    attempts = task.attempts.all()
    assert [attempt.outcome for attempt in attempts] == ["failed"] * 3
    assert "raise ConnectionError" in attempts[0].traceback


def test_a_permanent_failure_ends_failed_at_once(task, handler):
    def fail(task, lease):
        raise PermanentFailure("The address does not exist.")

    handler(fail)
    assert run_job(task.pk, 0) == TaskStatus.FAILED
    task.refresh_from_db()
    assert (task.attempt, task.last_error) == (1, "The address does not exist.")


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, MemoryError, SystemExit])
def test_whatever_a_handler_raises_is_a_failed_attempt(task, handler, error):
    def fail(task, lease):
        raise error

    handler(fail, ladder=(60,))
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    assert error.__name__ in task.attempts.get().error


def test_retry_later_waits_until_then_and_costs_no_attempt(task, handler):
    later = datetime.now(UTC) + timedelta(hours=3)

    def postpone(task, lease):
        raise RetryLater(later, "the office is closed")

    handler(postpone, ladder=(60, 300))
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    task.refresh_from_db()
    assert (task.run_at, task.attempt, task.max_attempts) == (later, 1, 4)


@pytest.mark.parametrize(
    "at", [None, "soon", datetime(2030, 1, 1), datetime.max.replace(tzinfo=UTC)], ids=str
)
def test_retry_later_at_no_usable_time_is_a_failed_attempt(task, handler, at):
    def postpone(task, lease):
        raise RetryLater(at, "the office is closed")

    handler(postpone, ladder=(60,))
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    assert seconds_to_wait(task) == 60
    assert "ValueError" in task.last_error


def test_retry_later_is_free_a_hundred_times_only(task, handler):
    def postpone(task, lease):
        raise RetryLater(datetime.now(UTC))

    handler(postpone, ladder=())
    BackgroundTask.objects.filter(pk=task.pk).update(max_attempts=1)
    runs = 0
    while run_job(task.pk, 0) == TaskStatus.WAITING:
        runs += 1
        assert runs < 150
    task.refresh_from_db()
    assert (task.status, runs) == (TaskStatus.FAILED, 100)


def test_a_released_task_is_due_now_and_climbs_no_ladder(task, handler):
    handler(lambda task, lease: 1 / 0, ladder=(60, 300))
    for _ in range(5):
        claim(task.pk, 0).release()
    assert seconds_to_wait(task) == 0
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    assert seconds_to_wait(task) == 60  # the first rung, though it is the sixth attempt
    outcomes = list(task.attempts.values_list("outcome", flat=True))
    assert outcomes == ["released"] * 5 + ["failed"]


def test_an_unknown_kind_fails_its_attempt_on_the_default_ladder(notes):
    task = BackgroundTask.objects.create(kind="FROM_NEXT_RELEASE")
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    assert seconds_to_wait(task) == 60
    assert "FROM_NEXT_RELEASE" in task.last_error
    assert task.max_attempts == 7


def test_progress_is_refused_inside_a_transaction(task):
    lease = claim(task.pk, 0)
    with transaction.atomic(), pytest.raises(transaction.TransactionManagementError):
        lease.progress(1, 2)


@pytest.mark.django_db(transaction=True)
def test_progress_is_shown_and_renews(notes):
    task = enqueue("NOTE")
    lease = claim(task.pk, 0)
    task.refresh_from_db()
    before = task.updated_at
    lease.progress(5, 10)
    lease.progress(6)
    task.refresh_from_db()
    assert (task.progress_done, task.progress_total) == (6, 10)
    assert task.updated_at > before


@pytest.mark.django_db(transaction=True)
def test_a_side_thread_renews_while_the_handler_works(notes, settings, wait_until):
    settings.TEAMDESK_RENEWAL_SECONDS = 0.05
    task = enqueue("SLOW", payload={"seconds": 0})
    lease = claim(task.pk, 0)
    task.refresh_from_db()
    before = task.updated_at
    with kept_alive([lease]):
        wait_until(lambda: BackgroundTask.objects.get(pk=task.pk).updated_at > before)


@pytest.mark.django_db(transaction=True)
def test_the_lease_is_not_renewed_beyond_the_time_limit(
    notes, settings, handler, monkeypatch, wait_until
):
    settings.TEAMDESK_RENEWAL_SECONDS = 0.05
    handler(lambda task, lease: None, time_limit=0.1)
    lease = claim(enqueue("NOTE").pk, 0)
    renewals = []
    monkeypatch.setattr(Lease, "renew", lambda self: renewals.append(self))
    with kept_alive([lease]):
        (thread,) = (t for t in threading.enumerate() if t.name.startswith("lease "))
        wait_until(lambda: not thread.is_alive(), "renewal has stopped")
    assert len(renewals) == 2


@pytest.mark.django_db(transaction=True)
def test_a_handler_that_lost_its_lease_is_told(notes, settings, wait_until):
    settings.TEAMDESK_RENEWAL_SECONDS = 0.05
    task = enqueue("SLOW", payload={"seconds": 0})
    lease = claim(task.pk, 0)
    with kept_alive([lease]):
        task.cancel()

        def told():
            try:
                lease.check()
            except LeaseLost:
                return True
            return False

        wait_until(told)
