"""Rounds: what is handed over, in which order, and what a fault leaves."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection
from django.db.models import F
from django.db.models.functions import Now

from tasks import queue, recovery, registry
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, DispatcherStatus, TaskStatus
from tasks.records import microseconds
from tasks.worker import run_job
from tests import services

pytestmark = pytest.mark.django_db

enqueue = BackgroundTask.objects.enqueue
in_days = lambda days: datetime.now(UTC) + timedelta(days=days)  # noqa: E731


def minutes_pass(minutes=1.0, **more):
    """As if this much time had passed since the tasks were handed over."""
    BackgroundTask.objects.filter(dispatched_at__isnull=False).update(
        dispatched_at=F("dispatched_at") - timedelta(minutes=minutes)
    )


def records_age(client, seconds=60):
    for key in client.scan_iter("teamdesk:job:*"):
        at = int(client.hget(key, "at"))
        client.hset(key, "at", at - seconds * 1_000_000)


@pytest.fixture
def redis_down(settings):
    settings.REDIS_URL = f"unix://{services.FOLDER}/nobody.sock"


def test_a_round_hands_over_new_tasks_and_stamps_them(notes, empty_queue):
    now, later = enqueue("NOTE"), enqueue("NOTE", run_at=in_days(1))
    report = dispatch_once()
    assert (report.scanned, report.enqueued) == (2, 2)
    assert empty_queue.llen("short") == 1
    assert empty_queue.zrange("teamdesk:delayed", 0, -1) == [later.job_id.encode()]
    for task in (now, later):
        task.refresh_from_db()
        assert task.dispatched_at is not None


def test_a_second_round_finds_nothing_to_do(notes, empty_queue):
    enqueue("NOTE")
    dispatch_once()
    report = dispatch_once()
    assert (report.scanned, report.enqueued, report.readded) == (0, 0, 0)
    assert empty_queue.llen("short") == 1


def test_it_drains_more_than_one_batch(notes, empty_queue, settings):
    settings.TEAMDESK_BATCH_SIZE = 10
    for _ in range(35):
        enqueue("NOTE")
    assert dispatch_once().enqueued == 35
    assert empty_queue.llen("short") == 35


@pytest.mark.parametrize("dispatched_at", [None, Now() - timedelta(minutes=5)])
def test_it_drains_slice_after_slice(notes, empty_queue, settings, monkeypatch, dispatched_at):
    settings.TEAMDESK_BATCH_SIZE = 2
    monkeypatch.setattr("tasks.dispatcher.SLICE", 5)
    for _ in range(12):
        enqueue("NOTE", fast_path_wanted=False)
    BackgroundTask.objects.update(dispatched_at=dispatched_at)
    assert dispatch_once().handed_over == 12
    assert empty_queue.llen("short") == 12
    assert dispatch_once().scanned == 0


def test_what_changes_after_its_slice_was_read_is_not_handed_over(
    notes, empty_queue, settings, monkeypatch
):
    settings.TEAMDESK_BATCH_SIZE = 1
    tasks = [enqueue("NOTE", fast_path_wanted=False) for _ in range(3)]
    view_of, cancelled = queue.view_of, []

    def cancel_the_last_meanwhile(batch, *args):
        cancelled.append(tasks[2].cancel())
        return view_of(batch, *args)

    monkeypatch.setattr(queue, "view_of", cancel_the_last_meanwhile)
    assert dispatch_once().enqueued == 2
    assert cancelled == [True, False]


@pytest.mark.django_db(transaction=True)
def test_rows_that_others_hold_end_no_round_and_come_again(
    notes, empty_queue, settings, monkeypatch, actor
):
    settings.TEAMDESK_BATCH_SIZE = 2
    monkeypatch.setattr("tasks.dispatcher.SLICE", 3)
    tasks = [enqueue("NOTE", fast_path_wanted=False) for _ in range(7)]
    person = actor("person")
    person.begin()
    person.do(BackgroundTask.objects.select_for_update().get, pk=tasks[1].pk)
    dispatch_once()
    person.commit()
    unstamped = BackgroundTask.objects.filter(dispatched_at=None)
    assert [task.pk for task in unstamped] == [tasks[1].pk]
    dispatch_once()
    assert not unstamped.all().exists()


def test_new_tasks_go_before_a_mass_of_far_off_reminders(notes, settings, empty_queue):
    """A batch of old re-checks is always reserved, but comes last."""
    settings.TEAMDESK_BATCH_SIZE = 10
    for _ in range(30):
        enqueue("NOTE", run_at=in_days(7))
    dispatch_once()
    minutes_pass()
    urgent = enqueue("LONG_NOTE")
    settings.TEAMDESK_ROUND_BUDGET_SECONDS = 0.05
    report = dispatch_once()
    urgent.refresh_from_db()
    assert urgent.dispatched_at
    assert report.rechecked == 10  # one batch, however little time there was


def test_due_rechecks_are_drained_and_others_get_one_batch(notes, settings):
    settings.TEAMDESK_BATCH_SIZE = 10
    for _ in range(25):
        enqueue("NOTE")
        enqueue("NOTE", run_at=in_days(7))
    dispatch_once()
    minutes_pass()
    assert dispatch_once().rechecked == 25 + 10


def test_a_redis_that_lost_everything_is_refilled(notes, empty_queue):
    enqueue("NOTE")
    enqueue("NOTE", run_at=in_days(1))
    dispatch_once()
    empty_queue.flushall()
    minutes_pass()
    assert dispatch_once().readded == 2
    assert (empty_queue.llen("short"), empty_queue.zcard("teamdesk:delayed")) == (1, 1)


def test_a_slow_worker_pool_breeds_no_messages(notes, empty_queue):
    for _ in range(300):
        enqueue("NOTE")
    dispatch_once()
    for _ in range(10):
        minutes_pass(6)
        records_age(empty_queue, 360)
        assert dispatch_once().readded == 0
    assert empty_queue.llen("short") == 300


def test_a_delayed_job_is_promoted_when_it_is_due(notes, empty_queue):
    task = enqueue("NOTE", run_at=in_days(1))
    dispatch_once()
    at = Now() - timedelta(seconds=1)
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=at)
    task.refresh_from_db()
    empty_queue.zadd("teamdesk:delayed", {task.job_id: microseconds(task.run_at)})
    report = dispatch_once()
    assert report.promoted == 1
    assert (empty_queue.llen("short"), empty_queue.zcard("teamdesk:delayed")) == (1, 0)


def test_a_delayed_job_whose_task_ended_is_only_removed(notes, empty_queue):
    task = enqueue("NOTE")
    run_job(task.pk, 0)
    empty_queue.zadd("teamdesk:delayed", {task.job_id: 1, "999:0": 1})
    assert dispatch_once().promoted == 0
    assert (empty_queue.llen("short"), empty_queue.zcard("teamdesk:delayed")) == (0, 0)


def test_what_is_no_job_leaves_the_delayed_set_and_blocks_nobody(notes, empty_queue):
    task = enqueue("NOTE")
    strange = {"strange": 1, b"\xff:0": 2, f"{10**20}:0": 3}
    empty_queue.zadd("teamdesk:delayed", strange | {task.job_id: 4})
    dispatch_once()
    assert empty_queue.zcard("teamdesk:delayed") == 0


def test_a_message_that_comes_too_early_puts_the_job_back(notes, empty_queue):
    task = enqueue("NOTE", run_at=in_days(1))
    assert run_job(task.pk, 0, "message") is None
    assert empty_queue.zscore("teamdesk:delayed", task.job_id) == microseconds(task.run_at)


def test_a_retried_attempt_is_handed_over_again(notes, empty_queue):
    task = enqueue("FAILS")
    dispatch_once()
    assert run_job(task.pk, 0, "message") == TaskStatus.WAITING
    assert dispatch_once().enqueued == 1
    assert empty_queue.zcard("teamdesk:delayed") == 1


def test_a_failed_record_of_a_recovered_attempt_waits_on_the_ladder(notes, empty_queue):
    task = enqueue("NOTE")
    dispatch_once()
    message = queue.view_of([task]).records[task.pk].message
    lease = Lease.claim(task.pk, 0)
    queue.mark_claimed({task.job_id: lease.task.attempt}, message)
    queue.mark_failed(task.job_id, message, "WorkerLostError: signal 9")
    BackgroundTask.objects.update(updated_at=Now() - timedelta(seconds=121))
    assert dispatch_once().recovered == 1
    dispatch_once()
    task.refresh_from_db()
    assert (task.status, task.attempt) == (TaskStatus.WAITING, 1)
    assert task.last_error == "WorkerLostError: signal 9"
    assert task.run_at - task.updated_at == timedelta(seconds=60)
    assert empty_queue.zcard("teamdesk:delayed") == 1
    assert empty_queue.hget(f"teamdesk:job:{task.job_id}", "state") == b"delayed"


def test_a_failed_record_of_an_unclaimed_message_costs_an_attempt(notes, empty_queue):
    task = enqueue("HANGS")  # one attempt
    dispatch_once()
    message = queue.view_of([task]).records[task.pk].message
    queue.mark_failed(task.job_id, message, "WorkerLostError: before the claim")
    minutes_pass()
    assert dispatch_once().failed == 1
    task.refresh_from_db()
    assert (task.status, task.attempt) == (TaskStatus.FAILED, 1)
    assert "before the claim" in task.last_error


def test_a_failed_record_of_an_absurd_attempt_costs_one(notes, empty_queue):
    task = enqueue("NOTE")
    dispatch_once()
    absurd = {"state": "failed", "attempt": 10**12}
    empty_queue.hset(f"teamdesk:job:{task.job_id}", mapping=absurd)
    minutes_pass()
    dispatch_once()
    task.refresh_from_db()
    assert (task.status, task.attempt) == (TaskStatus.WAITING, 1)


def test_a_scan_that_fails_does_not_keep_due_jobs_from_being_promoted(notes, monkeypatch):
    task = enqueue("NOTE", run_at=in_days(1))
    dispatch_once()
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=Now())
    monkeypatch.setattr("tasks.dispatcher.database_now", lambda: in_days(2))

    def broken(*args):
        raise DatabaseError("this row is broken")

    monkeypatch.setattr("tasks.dispatcher._scan", broken)
    with pytest.raises(RoundFault, match="this row is broken") as fault:
        dispatch_once()
    assert fault.value.report.promoted == 1


def test_a_queue_that_says_completed_is_overruled(notes, empty_queue):
    task = enqueue("NOTE")
    dispatch_once()
    queue.mark_ended(task.job_id, queue.view_of([task]).records[task.pk].message)
    minutes_pass()
    assert dispatch_once().readded == 1


def test_recovery_gives_the_same_run_another_attempt(notes):
    task = enqueue("NOTE")
    Lease.claim(task.pk, 0)
    BackgroundTask.objects.update(updated_at=Now() - timedelta(seconds=121))
    assert dispatch_once().recovered == 1
    task.refresh_from_db()
    assert (task.status, task.run, task.attempt) == (TaskStatus.WAITING, 0, 1)
    assert (task.execution_id, task.dispatched_at) == (None, None)
    assert task.attempts.get().outcome == "lease_expired"


def test_recovery_of_the_last_attempt_ends_failed(notes):
    task = enqueue("HANGS")
    Lease.claim(task.pk, 0)
    BackgroundTask.objects.update(updated_at=Now() - timedelta(seconds=121))
    assert dispatch_once().failed == 1
    task.refresh_from_db()
    assert task.status == TaskStatus.FAILED
    assert "lease" in task.last_error


def test_a_lease_that_was_renewed_in_time_is_left_alone(notes):
    task = enqueue("NOTE")
    Lease.claim(task.pk, 0)
    BackgroundTask.objects.update(updated_at=Now() - timedelta(seconds=110))
    assert dispatch_once().recovered == 0


def test_one_row_that_cannot_be_recovered_blocks_nobody(notes):
    tasks = [enqueue("NOTE") for _ in range(3)]
    for task in tasks:
        Lease.claim(task.pk, 0)
    BackgroundTask.objects.update(updated_at=Now() - timedelta(seconds=121))
    with connection.cursor() as cursor:  # the test's transaction takes it back
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # nothing is pending on the table
        cursor.execute(
            "ALTER TABLE tasks_backgroundtask ADD CONSTRAINT this_row_is_broken"
            f" CHECK (id <> {tasks[0].pk}) NOT VALID"
        )
    assert dispatch_once().recovered == 2
    assert BackgroundTask.objects.get(status=TaskStatus.RUNNING).pk == tasks[0].pk


def test_many_leases_are_recovered_with_few_questions(notes, django_assert_max_num_queries):
    """A machine that dies holds hundreds; two rounds must suffice for all of them."""
    for _ in range(150):
        Lease.claim(enqueue("NOTE").pk, 0)
    BackgroundTask.objects.update(updated_at=Now() - timedelta(seconds=121))
    with django_assert_max_num_queries(20):
        assert recovery.recover_expired_leases(60) == (150, 0)


def test_one_row_that_cannot_be_enqueued_blocks_nobody(notes, monkeypatch, empty_queue):
    bad, good = enqueue("NOTE"), enqueue("NOTE")
    original = queue.add

    def picky(tasks, *args, **kwargs):
        tasks = list(tasks)
        if any(task.pk == bad.pk for task in tasks):
            raise ValueError("this row is broken")
        return original(tasks, *args, **kwargs)

    monkeypatch.setattr(queue, "add", picky)
    assert dispatch_once().enqueued == 1
    assert empty_queue.llen("short") == 1
    bad.refresh_from_db()
    good.refresh_from_db()
    assert bad.dispatched_at and good.dispatched_at  # the bad one does not block the head
    assert "this row is broken" in bad.last_error


def test_with_redis_down_nothing_is_stamped_and_the_round_says_so(notes, redis_down):
    task = enqueue("NOTE")
    with pytest.raises(RoundFault, match="Redis"):
        dispatch_once()
    task.refresh_from_db()
    assert task.dispatched_at is None
    assert task.attempt == 0
    status = DispatcherStatus.current()
    assert "Redis" in status.last_error
    assert status.last_succeeded_at is None


def test_with_redis_down_recovery_and_purge_still_run(notes, redis_down, monkeypatch):
    purged = []
    monkeypatch.setattr(registry, "_purges", [lambda seconds: purged.append(1) or 3])
    task = enqueue("NOTE")
    Lease.claim(task.pk, 0)
    BackgroundTask.objects.update(updated_at=Now() - timedelta(seconds=121))
    with pytest.raises(RoundFault) as fault:
        dispatch_once()
    assert (fault.value.report.recovered, fault.value.report.purged) == (1, 3)


def test_a_failing_purge_is_reported_and_stops_nothing(notes, monkeypatch):
    def broken(seconds):
        raise RuntimeError("the shelf is jammed")

    monkeypatch.setattr(registry, "_purges", [broken, lambda seconds: 2])
    with pytest.raises(RoundFault, match="the shelf is jammed") as fault:
        dispatch_once()
    assert fault.value.report.purged == 2


def test_a_publish_of_uncertain_fate_is_neither_recorded_nor_stamped(
    notes, monkeypatch, empty_queue
):
    task = enqueue("NOTE")

    def broken(*args, **kwargs):
        raise queue.QueueUnreachable("cut in the middle")

    monkeypatch.setattr("tasks.queue.handing.publish", broken)
    with pytest.raises(RoundFault):
        dispatch_once()
    task.refresh_from_db()
    assert task.dispatched_at is None
    assert empty_queue.keys("teamdesk:job:*") == []


def test_every_round_writes_how_it_went(notes):
    enqueue("NOTE")
    dispatch_once()
    status = DispatcherStatus.current()
    assert status.last_succeeded_at >= status.last_started_at
    assert status.last_counts["enqueued"] == 1
    assert DispatcherStatus.objects.count() == 1
