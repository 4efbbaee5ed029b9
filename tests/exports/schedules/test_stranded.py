"""A schedule that nothing would run any more is paused, and its owner told why."""

import pytest

from exports.models import ScheduledExport
from tasks.models import BackgroundTask
from tasks.worker import run_job
from tests.exports.schedules.conftest import its_time_comes, reread, run_due, tasks, waiting
from tickets.models import Notification

pytestmark = pytest.mark.django_db(transaction=True)


def the_chore_runs():
    chore = BackgroundTask.objects.enqueue("STRANDED_SCHEDULES")
    assert run_job(chore.pk, 0) == "COMPLETED"


@pytest.fixture
def failed(scheduled, monkeypatch):
    """Its task failed for good: what was in the way is gone now."""
    task = its_time_comes(scheduled)
    BackgroundTask.objects.filter(pk=task.pk).update(max_attempts=1)
    with monkeypatch.context() as patched:
        patched.setattr(ScheduledExport, "run", lambda *args, **more: 1 / 0)
        assert run_job(task.pk, 0) == "FAILED"
    return task


def test_one_whose_task_failed_is_paused_with_its_error(scheduled, alice, failed):
    the_chore_runs()
    paused = reread(scheduled)
    assert paused.is_paused and paused.next_run_at is None
    assert paused.pause_reason == "Its last run failed: ZeroDivisionError: division by zero"
    told = Notification.objects.get()
    assert (told.user, told.kind, told.text) == (alice, "export_paused", "Open tickets")


def test_one_whose_task_was_cancelled_by_staff_is_paused(scheduled, root):
    assert tasks("WAITING").cancel(by=root) == 1
    the_chore_runs()
    assert "Its next run was cancelled." in reread(scheduled).pause_reason
    assert Notification.objects.get().kind == "export_paused"


def test_it_is_resumed_like_any_other(scheduled, alice, failed):
    the_chore_runs()
    assert reread(scheduled).resume(by=alice)
    assert len(waiting()) == 1
    assert run_due(scheduled).last_export
    the_chore_runs()
    assert not reread(scheduled).is_paused


def test_its_failed_task_does_nothing_when_it_is_tried_again_later(scheduled, failed):
    the_chore_runs()
    failed.refresh_from_db()
    assert failed.retry()
    assert run_job(failed.pk, failed.run) == "COMPLETED"
    assert reread(scheduled).is_paused
    assert reread(scheduled).last_export is None


def test_others_are_left_alone(scheduled, alice):
    """That wait, are due, ran, were changed or are paused."""
    the_chore_runs()
    its_time_comes(scheduled)
    the_chore_runs()
    run_due(scheduled)
    the_chore_runs()
    reread(scheduled).edit(by=alice, columns=["id"])
    the_chore_runs()
    assert not reread(scheduled).is_paused
    reread(scheduled).pause(by=alice)
    the_chore_runs()
    assert reread(scheduled).pause_reason == ""
    assert not Notification.objects.exists()


def test_it_is_told_once_however_often_the_chore_runs(scheduled, failed):
    the_chore_runs(), the_chore_runs()
    assert Notification.objects.count() == 1


def test_what_its_owner_does_at_that_moment_is_seen(scheduled, alice, failed, actor):
    """The chore found it stranded; its owner has just started it again."""
    owner, chore = actor("owner"), actor("chore")
    owner.begin()
    mine = ScheduledExport.objects.get(pk=scheduled.pk)
    owner.do(mine.pause, by=alice)
    owner.do(mine.resume, by=alice)
    pausing = chore.start(the_chore_runs)
    chore.wait_until_blocked()
    owner.commit()
    pausing.result(30)
    assert not reread(scheduled).is_paused
    assert len(waiting()) == 1
    assert not Notification.objects.exists()
