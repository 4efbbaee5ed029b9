"""Two connections in a forced order: whoever comes second finds 0 rows, and that is no error."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.models.functions import Now

from tasks import queue, recovery, transactions
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.round_lock import RoundInProgress
from tasks.worker import run_job
from tests import services
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def task(notes):
    return enqueue("NOTE")


def expire(task):
    BackgroundTask.objects.filter(pk=task.pk).update(updated_at=Now() - timedelta(seconds=121))


def reread(task):
    return BackgroundTask.objects.get(pk=task.pk)


def test_of_two_claims_at_once_one_wins(task, actor):
    anna, otto = actor("anna"), actor("otto")
    anna.begin()
    lease = anna.do(Lease.claim, task.pk, 0, "anna")
    second = otto.start(Lease.claim, task.pk, 0, "otto")
    otto.wait_until_blocked()
    anna.commit()
    assert second.result(30) is None
    assert reread(task).execution_id == lease.execution_id
    assert task.attempts.count() == 1


def test_a_claim_waits_for_a_claim_that_is_rolled_back(task, actor):
    anna, otto = actor("anna"), actor("otto")
    anna.begin()
    anna.do(Lease.claim, task.pk, 0)
    second = otto.start(Lease.claim, task.pk, 0)
    otto.wait_until_blocked()
    anna.do(transaction.set_rollback, True)
    anna.commit()
    assert second.result(30).task.attempt == 1


def test_a_finish_after_recovery_changes_nothing(task, notes):
    stale = Lease.claim(task.pk, 0)
    expire(task)
    assert recovery.recover_together([reread(task)]) == {task.pk: TaskStatus.WAITING}
    fresh = Lease.claim(task.pk, 0)
    for late in (
        lambda: stale.complete(lambda: write_note(task)),
        lambda: stale.fail_attempt(ValueError("late")),
        stale.release,
        stale.renew,
        lambda: stale.progress(5, 10),
    ):
        with pytest.raises(LeaseLost):
            late()
    assert notes(task) == 0
    after = reread(task)
    assert (after.status, after.execution_id) == (TaskStatus.RUNNING, fresh.execution_id)
    fresh.complete(lambda: write_note(task))
    assert notes(task) == 1
    outcomes = list(task.attempts.values_list("outcome", flat=True))
    assert outcomes == ["lease_expired", "completed"]


def test_a_failed_job_whose_row_another_holds_blocks_nobody(task, actor, empty_queue):
    dispatch_once()
    queue.mark_failed(task.job_id, queue.view_of([task]).records[task.pk].message, "signal 9")
    BackgroundTask.objects.update(dispatched_at=Now() - timedelta(minutes=1))
    enqueue("NOTE")
    empty_queue.zadd("teamdesk:delayed", {enqueue("LONG_NOTE").job_id: 1})
    editor = actor("editor")
    editor.begin()
    editor.do(lambda: BackgroundTask.objects.select_for_update().get(pk=task.pk).pk)
    dispatcher = actor("dispatcher")
    try:
        report = dispatcher.start(dispatch_once).result(10)
    finally:
        editor.commit()
    assert report.enqueued == 2
    assert reread(task).attempt == 0
    dispatch_once()
    assert reread(task).attempt == 1


def test_a_finish_against_a_cancel_that_came_first(task, actor, notes):
    lease = Lease.claim(task.pk, 0)
    person, worker = actor("person"), actor("worker")
    person.begin()
    assert person.do(task.cancel)
    finish = worker.start(lease.complete, lambda: write_note(task))
    worker.wait_until_blocked()
    person.commit()
    with pytest.raises(LeaseLost):
        finish.result(30)
    assert reread(task).status == TaskStatus.CANCELLED
    assert notes(task) == 0


def test_a_cancel_against_a_finish_that_came_first(task, actor, notes):
    lease = Lease.claim(task.pk, 0)
    person, worker = actor("person"), actor("worker")
    worker.begin()
    worker.do(lease.complete, lambda: write_note(task))
    cancel = person.start(task.cancel)
    person.wait_until_blocked()
    worker.commit()
    assert cancel.result(30) is False
    assert reread(task).status == TaskStatus.COMPLETED
    assert notes(task) == 1


def test_a_finish_outlives_a_restart_of_the_database(task, actor, notes, monkeypatch):
    worker = actor("worker")
    lease = worker.do(Lease.claim, task.pk, 0)
    pauses = []

    def restarted(seconds):
        pauses.append(seconds)
        services.postgres.start()

    monkeypatch.setattr("tasks.transactions.sleep", restarted)
    connection.close()
    services.postgres.stop()
    worker.do(lease.complete, lambda: write_note(task))
    assert len(pauses) == 1
    assert reread(task).status == TaskStatus.COMPLETED
    assert notes(task) == 1


def test_two_people_retrying_make_one_new_run(task, actor):
    task.cancel()
    anna, otto = actor("anna"), actor("otto")
    first, second = reread(task), reread(task)
    anna.begin()
    assert anna.do(first.retry)
    other = otto.start(second.retry)
    otto.wait_until_blocked()
    anna.commit()
    assert other.result(30) is False
    assert reread(task).run == 1


def test_a_job_of_an_old_run_is_refused(task, notes):
    task.cancel()
    reread(task).retry()
    assert run_job(task.pk, 0) is None
    assert run_job(task.pk, 1) == TaskStatus.COMPLETED
    assert notes() == [(task.pk, 1)]


def test_a_round_within_a_transaction_is_refused(task, empty_queue):
    """It would hand over what is not committed, and hold its rows while it talks to Redis."""
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        dispatch_once()
    assert empty_queue.llen("short") == 0


def test_a_second_dispatcher_does_nothing_while_a_round_is_on(task, round_under_way):
    finish = round_under_way()
    with pytest.raises(RoundInProgress):
        dispatch_once()
    assert finish().enqueued == 1
    assert dispatch_once().enqueued == 0


def test_a_round_that_has_returned_holds_no_lock(task, monkeypatch):
    """Even where PostgreSQL has yet to notice that its connection was closed."""
    copy = connection.copy()
    close, copy.close = copy.close, lambda: None
    monkeypatch.setattr(connection, "copy", lambda: copy)
    dispatch_once()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
            assert cursor.fetchone() == (0,)
    finally:
        close()


def test_a_dispatcher_that_waits_gets_its_turn(task, round_under_way, actor):
    finish = round_under_way()
    second = actor("second").start(dispatch_once, wait_seconds=20)
    assert finish().enqueued == 1
    assert second.result(30).enqueued == 0


def test_a_frozen_dispatcher_loses_its_lock(task, round_under_way, monkeypatch):
    monkeypatch.setattr("tasks.round_lock.LOCK_IDLE_LIMIT", "200ms")
    finish = round_under_way()
    assert dispatch_once(wait_seconds=20).enqueued == 1
    finish()  # it wakes, finds its work done, and does no harm
    assert reread(task).status == TaskStatus.WAITING


def test_enqueue_with_a_held_key_makes_a_claim_of_the_holder_wait(notes, actor):
    """The claim then sees what the enqueuing transaction wrote: no work is lost."""
    holder = enqueue("NOTE", dedup_key="report")
    person, worker = actor("person"), actor("worker")
    person.begin()
    again = person.do(enqueue, "NOTE", dedup_key="report")
    assert again.pk == holder.pk
    person.do(lambda: write_note(holder))  # stands for the business data of that request
    claim = worker.start(Lease.claim, holder.pk, 0)
    worker.wait_until_blocked()
    person.commit()
    assert claim.result(30).task.pk == holder.pk
    assert worker.do(notes, holder) == 1


def test_enqueue_waits_for_the_holders_claim_and_returns_the_holder(notes, actor):
    holder = enqueue("NOTE", dedup_key="report")
    person, worker = actor("person"), actor("worker")
    worker.begin()
    worker.do(Lease.claim, holder.pk, 0)
    again = person.start(enqueue, "NOTE", dedup_key="report")
    person.wait_until_blocked()
    worker.commit()
    assert again.result(30).pk == holder.pk
    assert BackgroundTask.objects.count() == 1


def test_enqueue_against_the_holders_finish_makes_a_new_task(notes, actor):
    holder = enqueue("NOTE", dedup_key="report")
    lease = Lease.claim(holder.pk, 0)
    person, worker = actor("person"), actor("worker")
    worker.begin()
    worker.do(lease.complete)
    again = person.start(enqueue, "NOTE", dedup_key="report")
    person.wait_until_blocked()
    worker.commit()
    assert again.result(30).pk != holder.pk


def test_the_same_key_from_twelve_threads_makes_one_task(notes):
    start, made, errors = threading.Barrier(12), [], []

    def request():
        try:
            start.wait(30)
            with transaction.atomic():
                made.append(enqueue("NOTE", dedup_key="once").pk)
                with connection.cursor() as cursor:  # the outer transaction is still usable
                    cursor.execute("SELECT 1")
                    assert cursor.fetchone() == (1,)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=request) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert len(made) == 12
    assert len(set(made)) == 1
    assert BackgroundTask.objects.count() == 1


def test_a_stamp_does_not_touch_a_task_that_went_on_meanwhile(task, monkeypatch):
    original = queue.add

    def add_and_run(tasks, *args, **kwargs):
        added = original(tasks, *args, **kwargs)
        run_job(task.pk, 0)  # a fast worker ends it before the stamp
        return added

    monkeypatch.setattr(queue, "add", add_and_run)
    dispatch_once()
    after = reread(task)
    assert (after.status, after.dispatched_at) == (TaskStatus.COMPLETED, None)


def test_a_row_that_another_holds_is_published_but_not_stamped(task, actor, empty_queue):
    editor = actor("editor")
    editor.begin()
    editor.do(lambda: BackgroundTask.objects.select_for_update().get(pk=task.pk).pk)
    report = dispatch_once()
    assert report.enqueued == 1
    assert empty_queue.llen("short") == 1
    editor.commit()
    assert reread(task).dispatched_at is None
    assert dispatch_once().enqueued == 0  # its record says that it is on its way
    assert empty_queue.llen("short") == 1
    assert reread(task).dispatched_at is not None


def test_a_finish_waits_for_a_row_that_another_holds_for_long(task, actor, notes, monkeypatch):
    """Giving up at the first lock timeout would cost the whole attempt."""
    monkeypatch.setattr(transactions, "_LOCK_TRIES", 1_000)
    monkeypatch.setattr(transactions, "_TRIES", 1_000)
    editor, worker = actor("editor"), actor("worker")
    lease = worker.do(Lease.claim, task.pk, 0)
    worker.do(_set_lock_timeout)
    editor.begin()
    editor.do(lambda: BackgroundTask.objects.select_for_update().get(pk=task.pk).pk)
    tried, go_on = [], threading.Event()

    def effect():
        write_note(task)
        tried.append(task.pk)
        if len(tried) == 3:
            go_on.set()

    finish = worker.start(lease.complete, effect)
    assert go_on.wait(30)
    editor.commit()
    finish.result(30)
    assert reread(task).status == TaskStatus.COMPLETED
    assert notes(task) == 1


def test_a_claim_gives_up_a_row_that_another_holds_for_long(task, actor):
    """It would only hold up other work: the dispatcher sends the task again."""
    editor, worker = actor("editor"), actor("worker")
    worker.do(_set_lock_timeout)
    editor.begin()
    editor.do(lambda: BackgroundTask.objects.select_for_update().get(pk=task.pk).pk)
    assert worker.do(run_job, task.pk, 0) is None
    editor.commit()
    assert reread(task).attempt == 0


def _set_lock_timeout():
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
