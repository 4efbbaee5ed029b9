"""Real Celery workers: what kills, hangs and shutdowns leave in the ledger."""

import os
import signal

import pytest

from tasks import queue
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tests import services

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

enqueue = BackgroundTask.objects.enqueue


def status_of(task):
    task.refresh_from_db()
    return task.status


def test_it_runs_what_the_dispatcher_publishes(processes, notes, wait_until):
    processes.worker()
    task = enqueue("NOTE")
    dispatch_once()
    wait_until(lambda: status_of(task) == TaskStatus.COMPLETED)
    assert notes(task) == 1


def test_it_runs_a_task_that_was_published_three_times_once(processes, notes, wait_until):
    task = enqueue("NOTE")
    due = BackgroundTask.objects.with_is_due().get(pk=task.pk)
    for _ in range(3):
        queue.add([due])
    processes.worker()
    last = enqueue("NOTE")
    dispatch_once()
    wait_until(lambda: status_of(last) == TaskStatus.COMPLETED)
    assert status_of(task) == TaskStatus.COMPLETED
    assert notes(task) == 1
    assert task.attempt == 1


def test_its_processes_collect_no_garbage_from_what_was_loaded_before(processes, wait_until):
    processes.worker()
    task = enqueue("COUNTS_OBJECTS")
    dispatch_once()
    wait_until(lambda: status_of(task) == TaskStatus.FAILED)
    left_out, looked_at = map(int, task.last_error.split())
    assert left_out > 10 * looked_at


def test_it_hands_its_lease_back_when_it_is_shut_down(processes, notes, wait_until):
    worker = processes.worker()
    task = enqueue("SLOW", payload={"seconds": 300})
    dispatch_once()
    wait_until(lambda: status_of(task) == TaskStatus.RUNNING)
    worker.stop()
    assert status_of(task) == TaskStatus.WAITING
    assert task.attempts.get().outcome == "released"
    assert task.max_attempts == 8  # the attempt was given back
    assert notes(task) == 0


def test_it_finishes_what_is_nearly_done_when_it_is_shut_down(processes, notes, wait_until):
    worker = processes.worker(TEAMDESK_SHUTDOWN_SECONDS="3")
    task = enqueue("SLOW", payload={"seconds": 0.5})
    dispatch_once()
    wait_until(lambda: status_of(task) == TaskStatus.RUNNING)
    worker.stop()
    assert status_of(task) == TaskStatus.COMPLETED
    assert notes(task) == 1


def test_a_hung_handler_frees_its_process_and_fails_its_attempt(
    processes, notes, wait_until, monkeypatch
):
    monkeypatch.setattr("tasks.queue.publishing.HARD_LIMIT_MARGIN_SECONDS", 0.5)
    processes.worker()
    task = enqueue("HANGS")
    dispatch_once()
    wait_until(lambda: status_of(task) == TaskStatus.FAILED)
    assert "time limit" in task.last_error


@pytest.mark.parametrize("prepared", ["idle", "busy with a backlog"])
def test_a_worker_outlives_a_redis_that_is_killed(processes, notes, wait_until, prepared):
    """The reason for early acknowledgement and no prefetch: with a message held unacknowledged, a
    Celery 5.7 worker exits when Redis dies."""
    worker = processes.worker()
    if prepared != "idle":
        busy = [enqueue("SLOW", payload={"seconds": 1}) for _ in range(6)]
        dispatch_once()
        wait_until(lambda: status_of(busy[0]) == TaskStatus.RUNNING)
    with services.valkey_killed():
        wait_until(lambda: "onnection" in worker.output.partition(" ready.")[2], "it notices")
    task = enqueue("NOTE")
    dispatch_once()
    wait_until(lambda: status_of(task) == TaskStatus.COMPLETED, "it consumes again", 60)
    assert worker.is_running()


def test_the_failed_record_of_a_killed_process_is_written(
    processes, notes, wait_until, empty_queue
):
    worker = processes.worker()
    task = enqueue("SLOW", payload={"seconds": 300})
    dispatch_once()
    wait_until(lambda: status_of(task) == TaskStatus.RUNNING)
    for child in worker.children():
        os.kill(child.pid, signal.SIGKILL)
    record = f"teamdesk:job:{task.job_id}"
    wait_until(lambda: empty_queue.hget(record, "state") == b"failed", "the record says failed")
    assert b"WorkerLost" in empty_queue.hget(record, "error")
    assert status_of(task) == TaskStatus.RUNNING  # the record decides nothing while a lease holds
