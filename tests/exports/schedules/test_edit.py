"""Changing, pausing, resuming and deleting one, while its task waits and while it runs."""

from datetime import time, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from exports.models import ScheduledExport
from exports.schedules.jobs import run_scheduled_export
from tasks.lease import Lease
from tasks.worker import run_job
from tests.exports.schedules.conftest import (
    exports,
    its_time_comes,
    reread,
    run_due,
    tasks,
    waiting,
)
from tickets.models import Notification, User

pytestmark = pytest.mark.django_db(transaction=True)


# While its task waits


def test_another_rhythm_moves_its_task(scheduled, alice):
    old = tasks().get()
    scheduled.edit(by=alice, rhythm="daily", time_of_day=time(17))
    scheduled = reread(scheduled)
    assert waiting() == [(scheduled.revision, scheduled.next_run_at)]
    assert scheduled.next_run_at <= timezone.now() + timedelta(days=1, hours=1)
    old.refresh_from_db()
    assert (old.status, old.last_error) == ("CANCELLED", "Cancelled by alice.")
    assert run_job(old.pk, 0) is None  # its message comes late
    assert not exports().exists()


def test_other_columns_alone_leave_its_time(scheduled, alice):
    before = scheduled.next_run_at
    scheduled.edit(by=alice, columns=["id"])
    assert waiting() == [(reread(scheduled).revision, before)]
    run_due(scheduled)
    assert exports().get().columns == ["id"]


def test_what_is_due_and_has_not_run_is_still_due_once(scheduled, alice):
    old = its_time_comes(scheduled)
    scheduled.edit(by=alice, columns=["id"])
    assert run_job(old.pk, 0) is None
    assert run_job(tasks("WAITING").get().pk, 0) == "COMPLETED"
    assert [export.columns for export in exports()] == [["id"]]
    assert reread(scheduled).next_run_at > timezone.now()


def test_a_refused_change_changes_nothing(scheduled, alice):
    before = waiting()
    with pytest.raises(ValidationError):
        scheduled.edit(by=alice, rhythm="daily", filters={"team": ["999"]})
    assert waiting() == before
    assert reread(scheduled).rhythm == "weekly"


def test_the_same_filters_keep_the_zone_of_their_days(scheduled, alice):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    scheduled.edit(by=alice, filters={"status": ["open"]})
    assert reread(scheduled).filters_zone == "UTC"
    scheduled.edit(by=alice, filters={"status": ["closed"]})
    assert reread(scheduled).filters_zone == "Asia/Shanghai"
    assert reread(scheduled).filters_shown == [["Status", "closed"]]


def test_a_paused_one_has_no_task_until_it_is_resumed(scheduled, alice):
    assert scheduled.pause(by=alice)
    assert waiting() == []
    paused = reread(scheduled)
    assert (paused.next_run_at, paused.pause_reason, paused.is_paused) == (None, "", True)
    assert not scheduled.pause(by=alice)  # a second click
    scheduled.edit(by=alice, rhythm="daily")
    assert waiting() == []
    assert reread(scheduled).is_paused
    assert scheduled.resume(by=alice)
    assert not scheduled.resume(by=alice)
    scheduled = reread(scheduled)
    assert waiting() == [(scheduled.revision, scheduled.next_run_at)]
    assert scheduled.next_run_at > timezone.now()
    assert not Notification.objects.exists()


def test_what_was_missed_while_it_was_paused_is_not_made_up_for(scheduled, alice):
    its_time_comes(scheduled)
    scheduled.pause(by=alice)
    scheduled.resume(by=alice)
    assert reread(scheduled).next_run_at > timezone.now()
    assert not exports().exists()


def test_a_deleted_one_leaves_its_files(scheduled, alice):
    scheduled = run_due(scheduled)
    task = tasks("WAITING").get()
    assert scheduled.discard(by=alice)
    assert not scheduled.discard(by=alice)
    assert waiting() == []
    assert run_job(task.pk, 0) is None
    assert exports().count() == 1


def test_one_that_was_deleted_meanwhile_cannot_be_changed(scheduled, alice):
    same = reread(scheduled)
    scheduled.discard(by=alice)
    for change in (
        lambda: same.edit(by=alice, name="x"),
        lambda: same.pause(by=alice),
        lambda: same.resume(by=alice),
        lambda: same.run_now(by=alice),
    ):
        with pytest.raises(ScheduledExport.DoesNotExist):
            change()
    assert waiting() == [] and not exports().exists()


# While it runs: a worker has claimed the task; its effect and the person's verb meet at the row.

VERBS = {
    "edit": lambda scheduled, by: scheduled.edit(by=by, columns=["id"]),
    "pause": lambda scheduled, by: scheduled.pause(by=by),
    "discard": lambda scheduled, by: scheduled.discard(by=by),
}


@pytest.fixture
def claimed(scheduled, actor):
    """The worker, its lease and its effect, not yet begun."""
    task = its_time_comes(scheduled)
    worker = actor("worker")
    lease = worker.do(Lease.claim, task.pk, 0)
    return worker, lease, worker.do(run_scheduled_export, lease.task, lease)


@pytest.mark.parametrize("verb", VERBS)
def test_the_persons_verb_is_first(scheduled, alice, actor, claimed, verb):
    worker, lease, effect = claimed
    person = actor("alice")
    person.begin()
    person.do(VERBS[verb], reread(scheduled), alice)
    finish = worker.start(lease.complete, effect)
    worker.wait_until_blocked()
    person.commit()
    finish.result(30)
    assert tasks().first().status == "COMPLETED"
    assert not exports().exists()
    if verb == "edit":  # what was due is due still, as it is now
        assert run_job(tasks("WAITING").get().pk, 0) == "COMPLETED"
        assert [export.columns for export in exports()] == [["id"]]
        assert len(waiting()) == 1
    else:
        assert waiting() == []


@pytest.mark.parametrize("verb", VERBS)
def test_the_worker_is_first(scheduled, alice, actor, claimed, verb):
    worker, lease, effect = claimed
    person = actor("alice")
    worker.begin()
    worker.do(lease.complete, effect)
    change = person.start(VERBS[verb], reread(scheduled), alice)
    person.wait_until_blocked()
    worker.commit()
    change.result(30)
    assert [export.columns for export in exports()] == [["id", "subject"]]
    if verb == "edit":
        scheduled = reread(scheduled)
        assert scheduled.next_run_at > timezone.now()
        assert waiting() == [(scheduled.revision, scheduled.next_run_at)]
    else:
        assert waiting() == []


def test_resuming_twice_at_once_makes_one_task(scheduled, alice, actor):
    scheduled.pause(by=alice)
    here, there = actor("here"), actor("there")
    here.begin()
    assert here.do(reread(scheduled).resume, alice)
    second = there.start(reread(scheduled).resume, alice)
    there.wait_until_blocked()
    here.commit()
    assert second.result(30) is False
    assert len(waiting()) == 1


def test_its_owner_is_deleted_while_it_runs(scheduled, claimed):
    worker, lease, effect = claimed
    User.objects.filter(username="alice").delete()
    worker.do(lease.complete, effect)
    assert tasks().get().status == "COMPLETED"
    assert not exports().exists() and not ScheduledExport.objects.exists()
