"""kill -9 of whole worker groups while each process runs something and more waits in the lists."""

import pytest

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

QUEUES = ("short", "long")


def test_nothing_is_running_past_the_lease_and_two_rounds(
    processes, held, notes, wait_until, reread, time_passes
):
    workers = [processes.worker(name, include="tests.faults.kinds") for name in QUEUES]
    tasks = [held.enqueue(kind) for kind in ("HELD", "LONG_HELD") for _ in range(5)]
    dispatch_once()
    running = BackgroundTask.objects.filter(status=TaskStatus.RUNNING)
    wait_until(lambda: sum(len(held.starts(task)) for task in tasks) == 4, "all are busy")
    struck = [task for task in tasks if held.starts(task)]
    for worker in workers:
        worker.kill()

    time_passes(60)
    for _ in range(2):
        dispatch_once(wait_seconds=10)
    assert running.count() == 4  # half a lease: they might be alive
    time_passes(61)
    for _ in range(2):
        dispatch_once(wait_seconds=10)
    assert not running.exists()
    for task in tasks:
        now = reread(task)
        assert (now.status, now.run) == (TaskStatus.WAITING, 0)
        assert now.attempt == (1 if task in struck else 0)
        outcomes = list(task.attempts.values_list("outcome", flat=True))
        assert outcomes == (["lease_expired"] if task in struck else [])
    assert notes() == []

    for name in QUEUES:
        processes.worker(name, include="tests.faults.kinds")
    for task in tasks:
        for attempt in (1, 2):
            held.let_go(task, attempt=attempt)

    def all_done():
        dispatch_once(wait_seconds=10)
        return all(reread(task).status == TaskStatus.COMPLETED for task in tasks)

    wait_until(all_done, "the next workers do all of it", 60)
    assert notes() == [(task.pk, 0) for task in tasks]
    for task in tasks:
        assert held.starts(task) == ([(0, 1), (0, 2)] if task in struck else [(0, 1)])


def test_so_it_is_when_each_process_holds_a_whole_batch(
    processes, held, notes, wait_until, reread, lease_runs_out
):
    """A hundred leases die at once; two rounds recover them all."""
    worker = processes.worker(include="tests.faults.kinds")
    tasks = [held.enqueue("HELD_BATCH") for _ in range(100)]
    dispatch_once()
    running = BackgroundTask.objects.filter(status=TaskStatus.RUNNING)
    wait_until(
        lambda: running.count() == 100 and sum(len(held.starts(task)) for task in tasks) == 2,
        "both are busy",
    )
    worker.kill()
    lease_runs_out()
    reports = [dispatch_once(wait_seconds=10) for _ in range(2)]
    assert sum(report.recovered for report in reports) == 100
    assert not running.exists()
    assert notes() == []

    for task in tasks:
        held.let_go(task, attempt=2)
    processes.worker(include="tests.faults.kinds")

    def all_done():
        dispatch_once(wait_seconds=10)
        done = BackgroundTask.objects.filter(status=TaskStatus.COMPLETED)
        return done.count() == len(tasks)

    wait_until(all_done, "the next worker does all of it", 60)
    assert notes() == [(task.pk, 0) for task in tasks]
    assert {reread(task).attempt for task in tasks} == {2}
