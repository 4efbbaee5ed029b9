"""A person cancels a running task; then its worker is killed; then the person runs it again."""

import os
import signal

import pytest

from tasks.dispatcher import dispatch_once
from tasks.models import TaskStatus

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("killed", ["the whole group", "the process that runs it"])
def test_it_stays_cancelled_and_a_new_run_executes(
    processes, held, notes, wait_until, reread, lease_runs_out, empty_queue, alice, killed
):
    worker = processes.worker(include="tests.faults.kinds")
    task = held.enqueue()
    dispatch_once()
    wait_until(lambda: held.starts(task))

    assert reread(task).cancel(by=alice)
    if killed == "the whole group":
        worker.kill()
    else:
        os.kill(held.process_of(task), signal.SIGKILL)
        record = f"teamdesk:job:{task.job_id}"
        wait_until(lambda: empty_queue.hget(record, "state") == b"failed", "the worker noticed")
    for _ in range(2):
        lease_runs_out()
        report = dispatch_once(wait_seconds=10)
        assert (report.recovered, report.failed, report.enqueued) == (0, 0, 0)
    cancelled = reread(task)
    assert (cancelled.status, cancelled.run, cancelled.attempt) == (TaskStatus.CANCELLED, 0, 1)
    assert "alice" in cancelled.last_error
    assert task.attempts.get().outcome == "cancelled"

    assert cancelled.retry(by=alice)
    if killed == "the whole group":
        processes.worker(include="tests.faults.kinds")
    dispatch_once(wait_seconds=10)
    wait_until(lambda: held.starts(task) == [(0, 1), (1, 1)], "the new run starts")
    held.let_go(task, run=1)
    wait_until(lambda: reread(task).status == TaskStatus.COMPLETED)
    assert notes() == [(task.pk, 1)]
    outcomes = list(task.attempts.values_list("run", "attempt", "outcome"))
    assert outcomes == [(0, 1, "cancelled"), (1, 1, "completed")]


def test_a_handler_that_never_noticed_the_cancel_leaves_no_effect(
    processes, held, notes, wait_until, reread, alice
):
    """It is not killed: it ends its work after the cancel, and after the new run was done."""
    worker = processes.worker(include="tests.faults.kinds")
    task = held.enqueue()
    dispatch_once()
    wait_until(lambda: held.starts(task))
    assert reread(task).cancel(by=alice)
    assert reread(task).retry(by=alice)
    dispatch_once(wait_seconds=10)
    held.let_go(task, run=1)
    wait_until(lambda: reread(task).status == TaskStatus.COMPLETED, "the new run is done")
    held.let_go(task, run=0)
    wait_until(lambda: "was taken from execution" in worker.output, "the old finish is refused")
    assert reread(task).status == TaskStatus.COMPLETED
    assert notes() == [(task.pk, 1)]
