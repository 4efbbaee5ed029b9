"""Redis is down for ten minutes and comes back empty: that costs time, never an attempt."""

from datetime import UTC, datetime, timedelta

import pytest

from tasks import fast_path
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, DispatcherStatus, TaskStatus
from tasks.worker import run_job
from tests import services
from tests.tasks.kinds import write_note

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

ROUND_SECONDS = 3
ROUNDS = 10 * 60 // ROUND_SECONDS

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def fast_path_on(settings):
    settings.TEAMDESK_FAST_PATH = True
    fast_path.rest.end()
    yield
    fast_path.rest.end()


def in_(**time):
    return datetime.now(UTC) + timedelta(**time)


def test_each_task_runs_once_on_its_first_attempt(
    processes, notes, wait_until, reread, time_passes, fast_path_on
):
    worker = processes.worker("short")  # lives through it all
    handed_over = [enqueue("LONG_NOTE") for _ in range(20)]  # in a list that nobody reads yet
    comes_due = [enqueue("NOTE", run_at=in_(minutes=5)) for _ in range(20)]
    tomorrow = enqueue("NOTE", run_at=in_(days=1))
    dispatch_once()
    running = Lease.claim(enqueue("NOTE", fast_path_wanted=False).pk, 0)
    taken_off_its_list = enqueue("NOTE", fast_path_wanted=False)
    told_before = {task.pk: task.dispatched_at for task in BackgroundTask.objects.all()}

    with services.valkey_killed():
        accepted = [enqueue("NOTE") for _ in range(20)]
        for number in range(ROUNDS):
            if number == ROUNDS // 2:
                # Workers need Redis for new messages, not for the work they hold.
                assert run_job(taken_off_its_list.pk, 0, "message") == TaskStatus.COMPLETED
                running.complete(lambda: write_note(running.task))
            elif number < ROUNDS // 2:
                running.renew()
            with pytest.raises(RoundFault, match="Redis"):
                dispatch_once(
                    wait_seconds=10
                )  # for the last one's lock, if its end is not seen yet
            time_passes(ROUND_SECONDS)

        for task in [*handed_over, *comes_due, tomorrow, *accepted]:
            after = reread(task)
            assert (after.status, after.run, after.attempt) == (TaskStatus.WAITING, 0, 0)
            assert after.max_attempts == task.max_attempts
            assert after.last_error == ""
            before = told_before.get(task.pk)
            shifted = before and before - timedelta(seconds=ROUNDS * ROUND_SECONDS)
            assert after.dispatched_at == shifted, "nothing was stamped meanwhile"
        assert DispatcherStatus.current().last_error.startswith("hand-over: QueueUnreachable")

    assert services.redis_client().dbsize() == 0
    processes.worker("long")
    everyone = [*handed_over, *comes_due, *accepted, running.task, taken_off_its_list]

    def all_done():
        dispatch_once(wait_seconds=10)
        return all(reread(task).status == TaskStatus.COMPLETED for task in everyone)

    wait_until(all_done, "every task that is due is done", 60)
    assert worker.is_running()
    assert notes() == sorted((task.pk, 0) for task in everyone)
    for task in everyone:
        assert reread(task).attempt == 1
        assert task.attempts.get().outcome == "completed"
    assert (reread(tomorrow).status, reread(tomorrow).attempt) == (TaskStatus.WAITING, 0)
    assert services.redis_client().zrange("teamdesk:delayed", 0, -1) == [tomorrow.job_id.encode()]
