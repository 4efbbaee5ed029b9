"""Recovery reads an expired lease and pauses; the task moves on before recovery writes."""

import threading
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from tasks import recovery
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def lease(notes):
    """Of a task that gave no sign of life for longer than its lease."""
    lease = Lease.claim(enqueue("NOTE").pk, 0, "the slow worker")
    _expire(lease.task)
    return lease


def _expire(task):
    BackgroundTask.objects.filter(pk=task.pk).update(updated_at=Now() - timedelta(seconds=121))


@pytest.fixture
def recovery_pauses(actor, monkeypatch):
    """``go_on = recovery_pauses()``: a round that has read which leases expired and has written
    nothing yet. ``go_on()`` lets it write and gives its report."""

    def begin():
        has_read, may_write = threading.Event(), threading.Event()
        original = recovery.recover_together

        def paused(tasks):
            has_read.set()
            assert may_write.wait(30)
            return original(tasks)

        monkeypatch.setattr(recovery, "recover_together", paused)
        report = actor("dispatcher").start(dispatch_once)
        assert has_read.wait(30)

        def go_on():
            may_write.set()
            return report.result(30)

        return go_on

    return begin


@pytest.mark.parametrize("sign_of_life", ["renewal", "progress"])
def test_a_renewal_that_arrives_meanwhile_wins(
    lease, recovery_pauses, actor, notes, reread, sign_of_life
):
    go_on = recovery_pauses()
    sign = lease.renew if sign_of_life == "renewal" else (lambda: lease.progress(1, 2))
    worker = actor("worker")
    worker.do(sign)
    report = go_on()
    assert (report.recovered, report.failed) == (0, 0)
    after = reread(lease.task)
    assert (after.status, after.execution_id) == (TaskStatus.RUNNING, lease.execution_id)
    worker.do(lease.complete, lambda: write_note(lease.task))
    assert reread(lease.task).status == TaskStatus.COMPLETED
    assert notes(lease.task) == 1
    assert lease.task.attempts.get().outcome == "completed"


def test_a_renewal_of_one_saves_only_that_one(lease, recovery_pauses, actor, reread):
    dead = Lease.claim(enqueue("NOTE").pk, 0, "the dead worker")
    _expire(dead.task)
    go_on = recovery_pauses()
    actor("worker").do(lease.renew)
    assert go_on().recovered == 1
    assert reread(lease.task).status == TaskStatus.RUNNING
    assert reread(dead.task).status == TaskStatus.WAITING
    assert dead.task.attempts.get().outcome == "lease_expired"


def test_a_renewal_still_under_way_makes_the_round_step_past(lease, recovery_pauses, actor, reread):
    go_on = recovery_pauses()
    worker = actor("worker")
    worker.begin()
    worker.do(lease.renew)  # holds the row, seen by nobody yet
    assert go_on().recovered == 0
    worker.commit()
    assert reread(lease.task).execution_id == lease.execution_id
    assert dispatch_once().recovered == 0


def test_a_renewal_that_is_rolled_back_saves_nothing(lease, recovery_pauses, actor, reread):
    go_on = recovery_pauses()
    worker = actor("worker")
    worker.begin()
    worker.do(lease.renew)
    assert go_on().recovered == 0
    worker.do(transaction.set_rollback, True)
    worker.commit()
    assert dispatch_once().recovered == 1
    assert reread(lease.task).status == TaskStatus.WAITING


def test_a_finish_that_arrives_meanwhile_stays(lease, recovery_pauses, actor, notes, reread):
    go_on = recovery_pauses()
    actor("worker").do(lease.complete, lambda: write_note(lease.task))
    assert go_on().recovered == 0
    assert reread(lease.task).status == TaskStatus.COMPLETED
    assert notes(lease.task) == 1
    assert lease.task.attempts.get().outcome == "completed"


def test_a_cancel_that_arrives_meanwhile_stays(lease, recovery_pauses, actor, reread):
    go_on = recovery_pauses()
    assert actor("person").do(lease.task.cancel)
    assert go_on().recovered == 0
    assert reread(lease.task).status == TaskStatus.CANCELLED
    assert lease.task.attempts.get().outcome == "cancelled"


@pytest.mark.parametrize("is_expired_too", [False, True])
def test_it_never_takes_the_lease_of_an_execution_that_it_did_not_read(
    lease, recovery_pauses, actor, reread, is_expired_too
):
    """Handed back and claimed anew meanwhile, in the same run: the new execution is another's."""
    go_on = recovery_pauses()
    worker = actor("worker")
    worker.do(lease.release)
    fresh = worker.do(Lease.claim, lease.task.pk, 0, "the next worker")
    if is_expired_too:
        _expire(lease.task)
    assert go_on().recovered == 0
    after = reread(lease.task)
    assert (after.status, after.execution_id) == (TaskStatus.RUNNING, fresh.execution_id)
    assert [attempt.outcome for attempt in lease.task.attempts.all()] == ["released", ""]


def test_a_renewal_that_comes_a_moment_too_late_is_refused(lease, actor, reread, notes):
    """The other order: recovery has written and not committed when the renewal arrives."""
    dispatcher, worker = actor("dispatcher"), actor("worker")
    dispatcher.begin()
    recovered = dispatcher.do(recovery.recover_together, [reread(lease.task)])
    assert recovered == {lease.task.pk: TaskStatus.WAITING}
    renewal = worker.start(lease.renew)
    worker.wait_until_blocked()
    dispatcher.commit()
    with pytest.raises(LeaseLost):
        renewal.result(30)
    with pytest.raises(LeaseLost):
        lease.check()  # what the handler asks as it goes
    with pytest.raises(LeaseLost):
        worker.do(lease.complete, lambda: write_note(lease.task))
    assert reread(lease.task).status == TaskStatus.WAITING
    assert notes() == []
