"""A beat is frozen in the middle of its round, for as long as others need to do its work.

PostgreSQL takes the round's lock from it. When it wakes it goes on where it stood, with what it had
read then, and does no harm.
"""

import signal
import sys

import psutil
import pytest
from django.db.models import F

from tasks.clock import database_now
from tasks.models import BackgroundTask, DispatcherStatus, TaskStatus

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

enqueue = BackgroundTask.objects.enqueue


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(("tasks.queue", "add"), id="between its scan and publishing"),
        pytest.param(("tasks.dispatcher", "_stamp"), id="between publishing and its stamp"),
    ],
)
def test_a_frozen_beat_loses_its_lock_and_does_no_harm_when_it_wakes(
    processes, notes, wait_until, reread, place
):
    done, failed, cancelled, again = (
        enqueue("NOTE"),
        enqueue("FAILS"),  # waits a minute after its first attempt
        enqueue("NOTE"),
        enqueue("NOTE"),  # a person makes a new run of it
    )
    frozen = processes.start(
        "frozen-beat", sys.executable, "-m", "tests.faults.stopping_beat", *place
    )
    process = psutil.Process(frozen.pid)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it is frozen", 60)
    assert not BackgroundTask.objects.filter(dispatched_at__isnull=False).exists()

    other = processes.beat()
    since = database_now()
    status = DispatcherStatus.current
    wait_until(
        lambda: status().last_succeeded_at and status().last_succeeded_at > since,
        "another beat has its lock and a successful round",
        60,
    )
    cancelled.cancel()
    again.cancel()
    assert reread(again).retry()
    processes.worker()
    wait_until(lambda: reread(done).status == TaskStatus.COMPLETED)
    wait_until(lambda: reread(again).status == TaskStatus.COMPLETED)
    wait_until(lambda: reread(failed).attempt == 1 and reread(failed).dispatched_at)
    assert process.status() == psutil.STATUS_STOPPED
    other.stop()
    rows = BackgroundTask.objects.filter(pk__in=[done.pk, failed.pk, cancelled.pk, again.pk])
    before = list(rows.order_by("pk").values())

    since = database_now()
    frozen.signal(signal.SIGCONT)
    wait_until(
        lambda: status().last_succeeded_at > since or status().last_failed_at,
        "it ends its round",
        60,
    )
    last = enqueue("NOTE")
    wait_until(lambda: reread(last).status == TaskStatus.COMPLETED, "it goes on working", 60)
    assert frozen.is_running()

    after = list(rows.order_by("pk").values())
    for row in before + after:
        if row["id"] == failed.pk:
            row["dispatched_at"] = None  # it may have looked at this one again
    assert after == before
    expected = [(done.pk, 0), (again.pk, 1), (last.pk, 0)]
    assert notes() == sorted(expected)
    attempts = BackgroundTask.objects.filter(pk=F("attempts__task"))
    assert attempts.filter(pk__in=[done.pk, failed.pk, again.pk, last.pk]).count() == 4
