"""One that fails, or is not to be run, spoils none of the others."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from tasks import queue
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_jobs
from tests.tasks.batches.ledger import COMPLETED, FAILED, WAITING, enqueue, jobs, outcomes, reread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("does", "status", "together"),
    [
        ("fails", WAITING, [2]),
        ("is hopeless", FAILED, [2]),
        ("has a bad effect", WAITING, [3]),
    ],
)
def test_one_that_fails_spoils_nobody(notes, groups, place, does, status, together):
    tasks = [enqueue(does if number == place else None) for number in range(3)]
    expected = [COMPLETED] * 3
    expected[place] = status
    assert run_jobs(jobs(tasks)) == expected
    bad = tasks.pop(place)
    assert groups == together
    assert notes() == [(task.pk, 0) for task in tasks]
    assert outcomes(bad) == ["failed"]
    assert reread(bad).attempt == 1
    assert all(outcomes(task) == ["completed"] for task in tasks)


def test_an_unknown_kind_fails_each_attempt_alone(notes):
    tasks = [BackgroundTask.objects.create(kind="FROM_NEXT_RELEASE") for _ in range(2)]
    assert run_jobs(jobs(tasks)) == [WAITING] * 2
    for task in tasks:
        assert "FROM_NEXT_RELEASE" in reread(task).last_error


def test_what_is_not_to_be_run_is_left_out(three, notes, empty_queue):
    gone, cancelled, early = enqueue(), enqueue(), enqueue()
    other_run = enqueue()
    dispatch_once()
    tasks = [*three, gone, cancelled, early, other_run]
    message = queue.view_of(tasks).records[gone.pk].message
    wanted = jobs(tasks)
    BackgroundTask.objects.filter(pk=gone.pk).delete()
    BackgroundTask.objects.filter(pk=cancelled.pk).update(
        status=TaskStatus.CANCELLED, finished_at=Now()
    )
    BackgroundTask.objects.filter(pk=early.pk).update(run_at=Now() + timedelta(hours=1))
    BackgroundTask.objects.filter(pk=other_run.pk).update(run=1)
    assert run_jobs(wanted, message, 1) == [COMPLETED] * 3 + [None] * 4
    assert len(notes()) == 3
    records = queue.view_of(tasks).records
    assert records[early.pk].state == "delayed"
    assert {records[task.pk].state for task in (gone, cancelled, other_run)} == {"completed"}
