"""What workers count: each attempt once, under labels that cannot multiply."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import F

from tasks import registry, worker
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask
from tasks.worker import run_job, run_jobs

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue
HOUR = timedelta(hours=1)


def attempts(counted):
    return {key[1:]: n for key, n in counted().items() if key[0] == "teamdesk_task_attempts_total"}


def dead_letters(counted):
    return {key[1]: n for key, n in counted().items() if key[0] == "teamdesk_dead_letters_total"}


def one(counted, name, *labels):
    return counted().get((name, *labels), 0)


def test_a_completed_attempt_is_counted_and_timed(counted, notes):
    run_job(enqueue("NOTE").pk, 0)
    assert attempts(counted) == {("NOTE", "completed"): 1}
    assert one(counted, "teamdesk_task_run_seconds_count", "NOTE") == 1
    assert one(counted, "teamdesk_task_wait_seconds_count", "NOTE") == 1


def test_the_wait_is_the_time_from_due_to_claim(counted, notes):
    task = enqueue("NOTE")
    BackgroundTask.objects.update(run_at=F("run_at") - HOUR)
    run_job(task.pk, 0)
    assert one(counted, "teamdesk_task_wait_seconds_sum", "NOTE") == pytest.approx(3600, abs=60)


def test_failures_are_counted_by_what_follows(counted):
    run_job(enqueue("FAILS").pk, 0)
    run_job(enqueue("HOPELESS").pk, 0)
    assert attempts(counted) == {("FAILS", "retried"): 1, ("HOPELESS", "failed"): 1}
    assert dead_letters(counted) == {"HOPELESS": 1}


def test_each_task_of_a_batch_is_counted(counted, notes):
    tasks = [enqueue("QUICK_NOTE") for _ in range(3)]
    tasks.append(enqueue("QUICK_NOTE", payload={"does": "is hopeless"}))
    run_jobs([(task.pk, 0) for task in tasks])
    assert attempts(counted) == {("QUICK_NOTE", "completed"): 3, ("QUICK_NOTE", "failed"): 1}
    assert one(counted, "teamdesk_task_wait_seconds_count", "QUICK_NOTE") == 4


def test_a_lease_that_was_lost_is_counted_once(counted, notes, monkeypatch):
    task = enqueue("NOTE")

    def cancelled_meanwhile(task, lease):
        BackgroundTask.objects.get(pk=task.pk).cancel()

    kind = registry.Kind("NOTE", cancelled_meanwhile)
    monkeypatch.setitem(registry._kinds, "NOTE", kind)
    assert run_job(task.pk, 0) is None
    assert attempts(counted) == {("NOTE", "lost"): 1}
    assert one(counted, "teamdesk_fenced_writes_total", "NOTE") == 1


def test_a_database_out_of_reach_is_counted(counted, monkeypatch):
    def refuse(*args, **kwargs):
        raise OperationalError("connection refused")

    monkeypatch.setattr(worker, "claim", refuse)
    run_job(1, 0)
    assert one(counted, "teamdesk_claims_refused_total", "unreachable") == 1


def test_a_finish_without_a_lease_is_counted_as_fenced_out(counted, notes):
    task = enqueue("NOTE")
    lease = Lease.claim(task.pk, 0)
    task.cancel()
    with pytest.raises(LeaseLost):
        lease.complete(lambda: None)
    assert one(counted, "teamdesk_fenced_writes_total", "NOTE") == 1


@pytest.mark.parametrize("reason", ["duplicate", "early", "gone"])
def test_a_message_without_work_is_counted_by_its_reason(counted, notes, reason):
    task = enqueue("NOTE")
    if reason == "duplicate":
        run_job(task.pk, 0)
    elif reason == "early":
        BackgroundTask.objects.update(run_at=F("run_at") + HOUR)
    else:
        BackgroundTask.objects.all().delete()
    run_job(task.pk, 0)
    assert one(counted, "teamdesk_claims_refused_total", reason) == 1


def test_kinds_that_nobody_knows_share_one_label(counted):
    for number in range(3):
        task = BackgroundTask.objects.create(kind=f"GONE_{number}")
        run_job(task.pk, 0)
    assert attempts(counted) == {("other", "retried"): 3}
