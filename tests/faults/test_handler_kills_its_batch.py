"""One of ten tasks that travel together kills the process that runs them all."""

import pytest

from tasks.dispatcher import dispatch_once
from tasks.models import TaskStatus

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("place", [0, 5, 9], ids=["first", "in the middle", "last"])
def test_it_costs_each_neighbour_one_attempt_and_all_of_them_complete(
    processes, held, notes, wait_until, reread, empty_queue, lease_runs_out, make_due, place
):
    batch = [held.enqueue("DEADLY_BATCH", kills=number == place) for number in range(10)]
    killer = batch[place]
    neighbours = [task for task in batch if task is not killer]
    assert dispatch_once().enqueued == 10
    assert empty_queue.llen("short") == 1, "they travel together"
    worker = processes.worker(include="tests.faults.kinds")

    def the_worker_noticed():
        return empty_queue.hget(f"teamdesk:job:{killer.job_id}", "state") == b"failed"

    for attempt in (1, 2, 3):
        wait_until(lambda: held.starts(killer)[-1:] == [(0, attempt)], f"death {attempt}", 60)  # noqa: B023
        wait_until(the_worker_noticed, "its record says failed", 60)
        if attempt == 2:  # each travels alone now
            wait_until(
                lambda: all(reread(task).status == TaskStatus.COMPLETED for task in neighbours),
                "every neighbour is done",
                60,
            )
        lease_runs_out()
        for _ in range(2):
            dispatch_once(wait_seconds=10)
        if attempt < 3:
            make_due()
            dispatch_once(wait_seconds=10)

    after = reread(killer)
    assert (after.status, after.attempt) == (TaskStatus.FAILED, after.max_attempts)
    assert held.starts(killer) == [(0, 1), (0, 2), (0, 3)]
    assert notes() == [(task.pk, 0) for task in neighbours]
    for task in neighbours:
        assert reread(task).attempt <= 2
        assert len(held.starts(task)) <= 2
        assert task.attempts.last().outcome == "completed"
    assert worker.is_running()
