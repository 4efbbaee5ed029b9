"""Its time comes: one export and the next time's task, whatever happens."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.utils import timezone

from exports.models import ScheduledExport
from exports.schedules.jobs import run_scheduled_export
from tasks.models import BackgroundTask
from tasks.worker import run_job, run_jobs
from tests.exports.conftest import records_of, reloaded
from tests.exports.schedules.conftest import (
    exports,
    its_time_comes,
    reread,
    run_due,
    schedule,
    tasks,
    waiting,
)
from tickets.models import Notification

pytestmark = pytest.mark.django_db(transaction=True)
A_WEEK = timedelta(days=7)


def test_it_makes_the_export_and_the_next_times_task(scheduled, alice, ticket, run):
    fire = ticket("Fire")
    ticket("Flood", status="closed")
    scheduled = run_due(scheduled)
    export = exports().get()
    assert scheduled.last_export == export
    assert export.requester == alice
    assert waiting() == [(scheduled.revision, scheduled.next_run_at)]
    assert scheduled.next_run_at > timezone.now()
    assert records_of(run(export)) == [{"id": str(fire.pk), "subject": "Fire"}]
    told = Notification.objects.get()
    assert (told.user, told.kind) == (alice, "export_ready")


def test_time_after_time(scheduled):
    for number in range(1, 4):
        scheduled = run_due(scheduled)
        assert exports().count() == number
        assert waiting() == [(scheduled.revision, scheduled.next_run_at)]
    assert tasks("COMPLETED").count() == 3


def test_a_doubled_message_makes_no_second_export(scheduled):
    task = its_time_comes(scheduled)
    assert run_jobs([(task.pk, 0), (task.pk, 0)]) == ["COMPLETED"]
    assert run_job(task.pk, 0) is None
    assert exports().count() == 1
    assert len(waiting()) == 1


def test_the_effect_of_the_same_task_again_does_nothing(scheduled):
    """As after a restore of yesterday's ledger beside today's data."""
    task = its_time_comes(scheduled)
    for _number in range(3):
        with transaction.atomic():
            run_scheduled_export(task, None)()
    assert exports().count() == 1
    assert len(waiting()) == 2  # the task itself, which no worker took, and the next


def test_two_workers_with_the_same_task_make_one_export(scheduled, actor):
    """Both took it for theirs: the first holds the row, the second finds another revision."""
    task = its_time_comes(scheduled)
    first, second = actor("first"), actor("second")
    first.begin()
    first.do(run_scheduled_export(task, None))
    late = second.start(_in_a_transaction, run_scheduled_export(task, None))
    second.wait_until_blocked()
    first.commit()
    late.result(30)
    assert exports().count() == 1


def _in_a_transaction(work):
    with transaction.atomic():
        work()


def test_late_by_days_it_makes_one_export_and_is_next_due_in_the_future(alice):
    daily = schedule(alice, rhythm="daily")
    its_time_comes(daily, ago=timedelta(days=10, hours=3))
    assert run_job(tasks("WAITING").get().pk, 0) == "COMPLETED"
    daily = reread(daily)
    assert exports().count() == 1
    assert len(waiting()) == 1
    assert timedelta(0) < daily.next_run_at - timezone.now() <= timedelta(days=1, hours=1)
    local = daily.next_run_at.astimezone(ZoneInfo("Europe/Berlin"))
    assert (local.hour, local.minute) == (8, 0)


def test_a_clock_set_back_does_not_repeat_a_time(scheduled, monkeypatch):
    """The database's clock says less than the time that the task was for."""
    then = scheduled.next_run_at
    monkeypatch.setattr("exports.models.running.database_now", lambda: then - timedelta(hours=1))
    with transaction.atomic():
        run_scheduled_export(tasks().get(), None)()
    scheduled = reread(scheduled)
    assert scheduled.next_run_at.date() == (then + A_WEEK).date()


def test_a_failed_attempt_leaves_nothing_and_the_next_makes_it_all(scheduled, monkeypatch):
    task = its_time_comes(scheduled)
    with monkeypatch.context() as broken:
        broken.setattr(ScheduledExport, "_enqueue", _raise)
        assert run_job(task.pk, 0) == "WAITING"
    assert not exports().exists()
    assert reread(scheduled).revision == scheduled.revision
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=timezone.now())
    assert run_job(task.pk, 0) == "COMPLETED"
    assert exports().count() == 1
    assert len(waiting()) == 1


def _raise(self):
    raise ConnectionError("the cable is out")


def test_a_dead_letter_that_a_person_retries_makes_its_one_export(scheduled, alice):
    task = its_time_comes(scheduled)
    task.cancel(by=alice)  # by an operator, in the ledger
    assert run_job(task.pk, 0) is None
    task.refresh_from_db()
    assert task.retry(by=alice)
    assert run_job(task.pk, 1) == "COMPLETED"
    assert exports().count() == 1
    assert len(waiting()) == 1


def test_what_its_owner_retries_after_a_change_does_nothing(scheduled, alice):
    task = its_time_comes(scheduled)
    task.cancel(by=alice)
    scheduled.edit(by=alice, name="Other")
    task.refresh_from_db()
    task.retry(by=alice)
    assert run_job(task.pk, 1) == "COMPLETED"
    assert not exports().exists()


def test_it_runs_when_its_owner_says_so_beside_the_schedule(scheduled, alice):
    before = waiting()
    export = scheduled.run_now(by=alice)
    assert waiting() == before
    assert reread(scheduled).last_export == export == exports().get()
    scheduled.pause(by=alice)
    assert scheduled.run_now(by=alice) != export
    assert exports().count() == 2


def test_a_pruned_export_is_forgotten_and_the_schedule_stays(scheduled, alice):
    scheduled = run_due(scheduled)
    export = scheduled.last_export
    export.cancel(by=alice)
    assert BackgroundTask.objects.filter(pk=export.pk).prune(timedelta(0)) == 1
    assert reread(scheduled).last_export is None
    assert len(waiting()) == 1


def test_what_it_made_is_an_export_like_any_other(scheduled, alice, ticket, run):
    ticket("Fire")
    export = run_due(scheduled).last_export
    assert reloaded(export).filters_shown == [["Status", "open"]]
    assert run(export).is_ready
