"""A ledger with a history to look at."""

import uuid
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from tasks.models import BackgroundTask, DispatcherStatus, TaskAttempt, TaskStatus


@pytest.fixture
def attempt(db):
    """``attempt(task, number, outcome, ago, took, waited)``: an attempt that ended ``ago`` seconds
    ago after ``took`` seconds; the task was due ``waited`` seconds before it began."""

    def make(task, number=1, outcome="completed", ago=60.0, took=1.0, waited=0.5, **fields):
        made = TaskAttempt.objects.create(
            task=task,
            run=task.run,
            attempt=number,
            execution_id=uuid.uuid4(),
            worker="short@desk1",
            outcome=outcome,
            started_at=Now() - timedelta(seconds=ago + took),
            finished_at=Now() - timedelta(seconds=ago),
            **fields,
        )
        BackgroundTask.objects.filter(pk=task.pk).update(
            attempt=number, run_at=Now() - timedelta(seconds=ago + took + waited)
        )
        return made

    return make


@pytest.fixture
def busy_ledger(make_task, attempt, ticket, bob):
    """A ledger with a day's work and some troubles; returns a failed task of bob's."""
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.08, {"scanned": 3, "enqueued": 3})
    for n in range(120):
        attempt(make_task(TaskStatus.COMPLETED), ago=700 * n + 30, took=0.2 + n % 7, waited=n % 5)
    for n in range(9):
        task = make_task(
            TaskStatus.FAILED, kind="CHORE", last_error=f"TimeoutError: no answer in {20 + n} s"
        )
        attempt(task, 7, "failed", ago=4_000 * n + 10, took=20, error=task.last_error)
    for n in range(3):
        make_task(
            last_error=f"ConnectionError: printer {n} is on fire",
            run_at=Now() + timedelta(minutes=n + 1),
            dispatched_at=Now(),
        )
    make_task(TaskStatus.RUNNING, attempt=1, progress_done=1_200, progress_total=5_000)
    make_task(run_at=Now() - timedelta(seconds=200), dispatched_at=Now())
    failed = make_task(
        TaskStatus.FAILED,
        ticket=ticket,
        owner=bob,
        max_attempts=3,
        payload={"export": 12},
        last_error="ValueError: <b>no</b> such column",
    )
    trace = '  File "exports/jobs.py", line 71, in run_export\nValueError: no such column'
    for number in (1, 2, 3):
        attempt(failed, number, "failed", ago=500 - 100 * number, took=2,
                error=failed.last_error, traceback=trace)  # fmt: skip
    return failed
