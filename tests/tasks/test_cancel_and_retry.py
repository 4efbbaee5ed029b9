from datetime import UTC, datetime, timedelta

import pytest

from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, DedupConflict, TaskStatus
from tasks.worker import run_job

pytestmark = pytest.mark.django_db

enqueue = BackgroundTask.objects.enqueue


def test_a_waiting_task_is_cancelled_by_name(alice, notes):
    task = enqueue("NOTE")
    assert task.cancel(by=alice) is True
    task.refresh_from_db()
    assert task.status == TaskStatus.CANCELLED
    assert task.finished_at
    assert "alice" in task.last_error
    assert run_job(task.pk, 0) is None
    assert notes() == []


def test_cancelling_a_running_task_closes_its_attempt(notes):
    task = enqueue("NOTE")
    Lease.claim(task.pk, 0)
    assert task.cancel()
    task.refresh_from_db()
    assert (task.status, task.execution_id) == (TaskStatus.CANCELLED, None)
    assert task.attempts.get().outcome == "cancelled"


def test_a_second_cancel_does_nothing(notes):
    task = enqueue("NOTE")
    assert task.cancel()
    assert task.cancel() is False


def test_what_ended_cannot_be_cancelled(notes):
    task = enqueue("NOTE")
    run_job(task.pk, 0)
    assert task.cancel() is False
    task.refresh_from_db()
    assert task.status == TaskStatus.COMPLETED


@pytest.mark.django_db(transaction=True)
def test_a_cancel_takes_the_job_out_of_the_delayed_set(notes, empty_queue):
    task = enqueue("NOTE", run_at=datetime.now(UTC) + timedelta(days=1))
    dispatch_once()
    assert empty_queue.zcard("teamdesk:delayed") == 1
    task.cancel()
    assert empty_queue.zcard("teamdesk:delayed") == 0
    assert empty_queue.keys("teamdesk:job:*") == []


def test_a_retry_starts_a_new_run(notes):
    task = enqueue("HOPELESS")
    assert run_job(task.pk, 0) == TaskStatus.FAILED
    task.refresh_from_db()
    assert task.retry() is True
    assert (task.status, task.run, task.attempt, task.last_error) == ("WAITING", 1, 0, "")
    for cleared in ("dispatched_at", "started_at", "finished_at", "expires_at", "progress_total"):
        assert getattr(task, cleared) is None
    assert task.max_attempts == 7


def test_a_retry_is_guarded_by_the_run_that_the_person_saw(notes):
    task = enqueue("NOTE")
    task.cancel()
    seen = BackgroundTask.objects.get(pk=task.pk)
    also_seen = BackgroundTask.objects.get(pk=task.pk)
    assert seen.retry()
    seen.cancel()
    assert also_seen.retry() is False
    assert BackgroundTask.objects.get(pk=task.pk).run == 1


@pytest.mark.parametrize("status", ["waiting", "running", "completed"])
def test_what_is_not_failed_or_cancelled_is_not_retried(status, notes):
    task = enqueue("NOTE")
    if status == "running":
        Lease.claim(task.pk, 0)
    elif status == "completed":
        run_job(task.pk, 0)
    task.refresh_from_db()
    assert task.retry() is False


def test_a_retry_whose_key_another_holds_is_a_clear_conflict(notes):
    old = enqueue("NOTE", dedup_key="daily")
    old.cancel()
    enqueue("NOTE", dedup_key="daily")
    old.refresh_from_db()
    with pytest.raises(DedupConflict, match="daily"):
        old.retry()
    old.refresh_from_db()
    assert (old.status, old.run) == (TaskStatus.CANCELLED, 0)
    assert BackgroundTask.objects.count() == 2  # and the transaction is still usable
