"""A handler sends SIGKILL to the process that runs it, each time it is tried."""

import pytest
from django.db.models.functions import Now

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

enqueue = BackgroundTask.objects.enqueue


def test_it_ends_failed_after_its_attempts_and_others_go_on(
    processes, held, notes, wait_until, reread, empty_queue, lease_runs_out, make_due
):
    worker = processes.worker(include="tests.faults.kinds")
    killer = held.enqueue("DEADLY")
    others = []

    def one_more_is_done():
        others.append(enqueue("NOTE"))
        dispatch_once(wait_seconds=10)
        wait_until(lambda: reread(others[-1]).status == TaskStatus.COMPLETED, "others go on", 60)

    def the_worker_noticed():
        return empty_queue.hget(f"teamdesk:job:{killer.job_id}", "state") == b"failed"

    for attempt in (1, 2, 3):
        one_more_is_done()  # its round hands the killer over, too
        wait_until(lambda: held.starts(killer)[-1:] == [(0, attempt)], f"death {attempt}", 60)  # noqa: B023
        wait_until(the_worker_noticed, "its record says failed", 60)
        one_more_is_done()
        assert reread(killer).status == TaskStatus.RUNNING  # a record decides nothing over a lease
        lease_runs_out()
        report = dispatch_once(wait_seconds=10)
        if attempt < 3:
            assert (report.recovered, report.failed) == (1, 0)
            dispatch_once(wait_seconds=10)
            later = BackgroundTask.objects.filter(pk=killer.pk, run_at__gt=Now())
            assert later.exists(), "it waits on its ladder"
            make_due()
        else:
            assert (report.recovered, report.failed) == (0, 1)

    one_more_is_done()
    after = reread(killer)
    assert (after.status, after.attempt) == (TaskStatus.FAILED, after.max_attempts)
    assert held.starts(killer) == [(0, 1), (0, 2), (0, 3)]
    assert {attempt.outcome for attempt in killer.attempts.all()} == {"lease_expired"}
    assert "worker" in after.last_error
    assert worker.is_running()
    assert notes() == [(task.pk, 0) for task in others]
    assert all(reread(task).attempt == 1 for task in others)
