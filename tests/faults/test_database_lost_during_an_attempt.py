"""The database goes away while a handler works and comes back: nobody's failure, so no attempt is
charged and the task does not wait on its ladder."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from psycopg import errors

from tasks import queue, registry
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tasks.records import State
from tasks.registry import Kind
from tasks.worker import _record_failure, execute, run_job
from tests import services
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def handler(monkeypatch):
    """``handler(function)``: what kind NOTE does in this test; its ladder starts with a minute."""

    def install(function):
        monkeypatch.setitem(
            registry._kinds, "NOTE", Kind("NOTE", function, ladder=(60, 300), time_limit=60)
        )

    return install


def ask(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


def cut(task, lease):
    ask("SELECT pg_terminate_backend(pg_backend_pid())")


def restart(task, lease):
    services.postgres.stop()
    services.postgres.start()
    ask("SELECT 1")


def wait_of(task):
    """From the end of its last attempt, which one statement wrote with the time it is due."""
    task.refresh_from_db()
    return task.run_at - task.updated_at


@pytest.mark.parametrize("loss", [cut, restart])
def test_it_costs_no_attempt_and_no_minute(handler, notes, loss):
    handler(loss)
    task = enqueue("NOTE")
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    task.refresh_from_db()
    assert (task.attempt, task.max_attempts) == (1, 4)
    assert wait_of(task) == timedelta(seconds=5)
    assert task.attempts.get().outcome == "released"

    handler(lambda task, lease: lambda: write_note(task))
    BackgroundTask.objects.update(run_at=Now())
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED
    assert notes(task) == 1


def test_a_task_that_takes_the_database_down_waits_longer_each_time_and_ends(handler):
    handler(cut)
    task = enqueue("NOTE")
    waits = []
    for _ in range(3):
        BackgroundTask.objects.update(run_at=Now())
        run_job(task.pk, 0)
        waits.append(wait_of(task).total_seconds())
    assert waits == [5, 10, 20]
    BackgroundTask.objects.update(run_at=Now(), max_attempts=3 + registry.FREE_RETRIES, attempt=102)
    assert run_job(task.pk, 0) == TaskStatus.FAILED


@pytest.mark.parametrize(
    "sql",
    [
        "SET statement_timeout = '50ms'; SELECT pg_sleep(60)",
        "SELECT 1 / 0",
        "SELECT * FROM nowhere",
    ],
)
def test_a_database_that_refuses_is_a_failure_like_any_other(handler, sql):
    handler(lambda task, lease: ask(sql))
    task = enqueue("NOTE")
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    ask("SET statement_timeout = 0")
    task.refresh_from_db()
    assert (task.attempt, task.max_attempts) == (1, 3)
    assert wait_of(task) > timedelta(seconds=30)


def test_out_of_reach_to_the_end_is_left_to_recovery_and_not_said_to_have_failed(
    notes, time_passes
):
    """Celery reports what leaves the worker; the queue must not call the job failed for it, or it
    would wait on its ladder after its recovery."""
    task = enqueue("NOTE")
    dispatch_once()
    message = queue.view_of([task]).records[task.pk].message
    lease = Lease.claim(task.pk, 0)
    queue.mark_claimed({task.job_id: lease.task.attempt}, message)
    lost = OperationalError("server closed the connection unexpectedly")
    lost.__cause__ = errors.OperationalError()
    named = {"task_id": task.pk, "run": 0}
    _record_failure(sender=execute, task_id=message, exception=lost, kwargs=named)
    assert queue.view_of([task]).records[task.pk].state == State.ACTIVE
    time_passes(121)
    assert dispatch_once().recovered == 1
    dispatch_once()
    assert wait_of(task) <= timedelta(0)
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED
