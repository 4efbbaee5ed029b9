"""A real worker is killed in the midst of it: one export and one next task all the same."""

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask
from tests.exports.schedules.conftest import exports, its_time_comes, reread, tasks, waiting
from tests.exports.schedules.kinds import AFTER_THE_COMMIT, MOMENTS

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

# The lease ends soon, so that the test need not wait long for it.
SOON = {"TEAMDESK_LEASE_SECONDS": "2", "TEAMDESK_RENEWAL_SECONDS": "1"}


@pytest.mark.parametrize("moment", MOMENTS)
def test_once(processes, scheduled, settings, tmp_path, wait_until, moment):
    settings.TEAMDESK_LEASE_SECONDS = 2
    flag = tmp_path / "die"
    flag.touch()
    task = its_time_comes(scheduled)
    processes.worker(
        include="tests.exports.schedules.kinds",
        TEST_DIE_AT=moment,
        TEST_DIE_ONCE=str(flag),
        **SOON,
    )

    def is_done():
        dispatch_once()
        # Nobody waits for the ladder's first minute, or for a re-check, here.
        again = BackgroundTask.objects.waiting().filter(pk=task.pk, run_at__gt=Now())
        again.update(run_at=Now(), dispatched_at=None)
        task.refresh_from_db()
        return task.status == "COMPLETED" and not flag.exists()

    wait_until(is_done, "it ran after a death", 60)
    for _number in range(3):  # whatever messages are left
        dispatch_once()
    scheduled = reread(scheduled)
    assert exports().count() == 1
    assert scheduled.last_export == exports().get()
    assert waiting() == [(scheduled.revision, scheduled.next_run_at)]
    assert scheduled.next_run_at > timezone.now()
    outcomes = list(task.attempts.order_by("pk").values_list("outcome", flat=True))
    assert outcomes[-1] == "completed"
    assert len(outcomes) == 1 if moment == AFTER_THE_COMMIT else len(outcomes) > 1
    assert tasks().count() == 2
