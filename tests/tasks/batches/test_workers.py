"""Batches in real workers, which are also killed and stopped."""

import pytest
from django.db.models.functions import Now

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tests.tasks.batches.ledger import COMPLETED, FAILED, WAITING, enqueue, outcomes, reread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.processes
def test_a_worker_runs_what_travelled_together(processes, three, notes, wait_until, empty_queue):
    dispatch_once()
    assert empty_queue.llen("short") == 1
    processes.worker()
    wait_until(lambda: all(reread(task).status == COMPLETED for task in three))
    assert len(notes()) == 3


@pytest.mark.processes
def test_one_that_kills_its_worker_costs_each_neighbour_one_attempt(
    processes, notes, wait_until, settings
):
    settings.TEAMDESK_LEASE_SECONDS = 1
    tasks = [enqueue(), enqueue("kills its worker"), enqueue()]
    BackgroundTask.objects.filter(pk=tasks[1].pk).update(max_attempts=1)
    processes.worker()
    dispatch_once()
    wait_until(lambda: outcomes(tasks[0]))

    def rounds_until_the_end():
        dispatch_once()
        # The failed record of the process sends its tasks up the ladder: the wait is cut short.
        BackgroundTask.objects.waiting().filter(dispatched_at=None).update(run_at=Now())
        BackgroundTask.objects.waiting().update(run_at=Now(), dispatched_at=None)
        return all(reread(task).is_terminal for task in tasks)

    wait_until(rounds_until_the_end, "each has an end", 90)
    assert [reread(task).status for task in tasks] == [COMPLETED, FAILED, COMPLETED]
    assert [outcomes(task) for task in tasks] == [
        ["lease_expired", "completed"],
        ["lease_expired"],
        ["lease_expired", "completed"],
    ]
    assert notes() == [(tasks[0].pk, 0), (tasks[2].pk, 0)]


@pytest.mark.processes
def test_a_shutdown_releases_what_is_not_done(processes, notes, wait_until):
    tasks = [enqueue(), enqueue("is slow"), enqueue()]
    BackgroundTask.objects.filter(pk=tasks[1].pk).update(
        payload={"does": "is slow", "seconds": 300}
    )
    worker = processes.worker()
    dispatch_once()
    wait_until(lambda: reread(tasks[1]).status == TaskStatus.RUNNING)
    worker.stop()
    for task in tasks:
        after = reread(task)
        assert (after.status, after.attempt, after.max_attempts) == (WAITING, 1, 4)
        assert outcomes(task) == ["released"]
    assert notes() == []
