"""A job takes longer than three leases, while messages for it are published again and again."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from tasks import queue
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

LEASE = 3  # seconds: short, and still far longer than the pauses of a busy machine
SHORT_LEASE = {"TEAMDESK_LEASE_SECONDS": str(LEASE), "TEAMDESK_RENEWAL_SECONDS": "0.3"}
NO_RENEWAL = {"TEAMDESK_LEASE_SECONDS": "7200", "TEAMDESK_RENEWAL_SECONDS": "3600"}
DUPLICATES = 40


def test_it_is_started_once(processes, held, notes, wait_until, reread, empty_queue):
    processes.worker(include="tests.faults.kinds", **SHORT_LEASE)  # two processes: one stays free
    processes.beat(**SHORT_LEASE)
    task = held.enqueue()
    wait_until(lambda: held.starts(task))
    execution = reread(task).execution_id
    due = BackgroundTask.objects.with_is_due().get(pk=task.pk)
    published = []

    def is_older_than_three_leases():
        if len(published) < DUPLICATES:
            published.append(queue.add([due]))
        old = Now() - timedelta(seconds=3 * LEASE + 1)
        is_old = BackgroundTask.objects.filter(pk=task.pk, started_at__lt=old).exists()
        return is_old and len(published) == DUPLICATES and not empty_queue.llen("short")

    wait_until(is_older_than_three_leases, "it is old and every duplicate was taken", 60)
    now = reread(task)
    assert (now.status, now.execution_id) == (TaskStatus.RUNNING, execution)
    held.let_go(task)
    wait_until(lambda: reread(task).status == TaskStatus.COMPLETED)
    assert held.starts(task) == [(0, 1)]
    assert task.attempts.get().outcome == "completed"
    assert notes(task) == 1


def test_without_renewals_the_first_finish_is_refused(
    processes, held, notes, wait_until, reread, lease_runs_out
):
    worker = processes.worker(include="tests.faults.kinds", **NO_RENEWAL)
    task = held.enqueue()
    dispatch_once()
    wait_until(lambda: held.starts(task))
    lease_runs_out()
    assert dispatch_once(wait_seconds=10).recovered == 1
    dispatch_once(wait_seconds=10)
    wait_until(lambda: held.starts(task) == [(0, 1), (0, 2)], "it is started again")
    second = reread(task)

    held.let_go(task, attempt=1)
    wait_until(lambda: "was taken from execution" in worker.output, "the finish is refused")
    assert notes() == []
    now = reread(task)
    assert (now.status, now.execution_id) == (TaskStatus.RUNNING, second.execution_id)

    held.let_go(task, attempt=2)
    wait_until(lambda: reread(task).status == TaskStatus.COMPLETED)
    outcomes = list(task.attempts.values_list("outcome", flat=True))
    assert outcomes == ["lease_expired", "completed"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT execution FROM test_notes")
        assert cursor.fetchall() == [(second.execution_id,)]
