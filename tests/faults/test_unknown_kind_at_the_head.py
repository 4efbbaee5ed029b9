"""One hundred tasks of a kind that nobody knows yet are the first that every round sees."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.db.models.functions import Now

from tasks import dispatcher, registry
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tests.faults import kinds
from tests.tasks.kinds import write_note

KIND = "FROM_NEXT_RELEASE"

enqueue = BackgroundTask.objects.enqueue


def unknown(count: int) -> list[BackgroundTask]:
    """Enqueued by the next release's web, an hour ago."""
    assert KIND not in registry.kinds()
    BackgroundTask.objects.bulk_create(
        BackgroundTask(kind=KIND, run_at=Now() - timedelta(hours=1)) for _ in range(count)
    )
    return list(BackgroundTask.objects.filter(kind=KIND).order_by("pk"))


@pytest.mark.django_db
def test_the_hundred_and_first_is_handed_over_in_the_second_round_at_the_latest(
    notes, empty_queue, reread, monkeypatch
):
    """Even when every batch takes as long as a whole round may."""
    clock, hand_over = [0.0], dispatcher._hand_over

    def slowly(*args, **options):
        clock[0] += settings.TEAMDESK_ROUND_BUDGET_SECONDS + 1
        return hand_over(*args, **options)

    monkeypatch.setattr(dispatcher, "_hand_over", slowly)
    monkeypatch.setattr(dispatcher, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    strangers = unknown(100)
    known = enqueue("NOTE")
    assert dispatch_once(wait_seconds=10).enqueued == 100
    assert reread(known).dispatched_at is None
    assert dispatch_once(wait_seconds=10).enqueued == 1
    assert reread(known).dispatched_at is not None
    assert all(reread(task).dispatched_at is not None for task in strangers)
    assert empty_queue.llen("short") == 101


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_knows_the_kind_recovers_them_all(
    processes, notes, wait_until, reread, make_due
):
    todays = processes.worker()
    strangers = unknown(100)
    known = enqueue("NOTE")
    report = dispatch_once()
    assert (report.enqueued, report.failed) == (101, 0)
    wait_until(lambda: reread(known).status == TaskStatus.COMPLETED, "the known one is done", 60)
    tried = BackgroundTask.objects.filter(kind=KIND, status=TaskStatus.WAITING, attempt=1)
    wait_until(lambda: tried.count() == 100, "each has failed one attempt", 60)
    for task in strangers:
        assert KIND in reread(task).last_error
        assert task.attempts.get().outcome == "failed"
    assert not tried.filter(run_at__lte=Now()).exists(), "they wait on their ladder"
    assert todays.is_running()

    todays.stop()
    processes.worker(include="tests.faults.next_release")
    make_due()
    done = BackgroundTask.objects.filter(kind=KIND, status=TaskStatus.COMPLETED)

    def all_done():
        dispatch_once(wait_seconds=10)
        return done.count() == 100

    wait_until(all_done, "the next release's worker does them", 60)
    assert notes() == sorted((task.pk, 0) for task in [*strangers, known])
    assert set(done.values_list("attempt", "last_error")) == {(2, "")}


@pytest.mark.django_db
def test_without_one_they_end_failed_with_the_reason_and_a_person_may_retry(
    notes, reread, make_due, monkeypatch
):
    strangers = unknown(5)
    attempts = len(registry.DEFAULT_LADDER) + 1
    for number in range(1, attempts + 1):
        known = enqueue("NOTE")
        dispatch_once(wait_seconds=10)
        expected = TaskStatus.WAITING if number < attempts else TaskStatus.FAILED
        assert {run_job(task.pk, 0) for task in strangers} == {expected}
        assert run_job(known.pk, 0) == TaskStatus.COMPLETED
        make_due()
    for task in map(reread, strangers):
        assert (task.attempt, task.max_attempts) == (attempts, attempts)
        assert f"No handler for kind '{KIND}'" in task.last_error
        assert [attempt.outcome for attempt in task.attempts.all()] == ["failed"] * attempts

    kinds.use(monkeypatch, KIND, lambda task, lease: lambda: write_note(task))
    for task in map(reread, strangers):
        assert task.retry()
        assert run_job(task.pk, 1) == TaskStatus.COMPLETED
        assert notes(task) == 1
