"""The fast path: one hand-over per transaction, after the commit, never needed."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from tasks import fast_path, metrics, queue
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask
from tests import services

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture(autouse=True)
def fast(settings):
    settings.TEAMDESK_FAST_PATH = True
    fast_path.rest.end()


@pytest.fixture
def calls(monkeypatch):
    made, original = [], queue.add

    def counted(tasks, *args, **kwargs):
        tasks = list(tasks)
        made.append({task.pk for task in tasks})
        return original(tasks, *args, **kwargs)

    monkeypatch.setattr(queue, "add", counted)
    return made


def test_it_hands_over_after_the_commit_and_never_stamps(notes, empty_queue):
    with transaction.atomic():
        task = enqueue("NOTE")
        assert empty_queue.llen("short") == 0
    assert empty_queue.llen("short") == 1
    task.refresh_from_db()
    assert task.dispatched_at is None


def test_the_next_round_finds_it_on_its_way(notes, empty_queue):
    enqueue("NOTE")
    report = dispatch_once()
    assert (report.scanned, report.enqueued) == (1, 0)
    assert empty_queue.llen("short") == 1


def test_it_is_one_call_for_a_transaction(notes, calls):
    with transaction.atomic():
        tasks = {enqueue("NOTE").pk for _ in range(5)}
    assert calls == [tasks]


def test_what_a_savepoint_rolled_back_is_not_handed_over(notes, calls):
    with transaction.atomic():
        with pytest.raises(RuntimeError), transaction.atomic():
            enqueue("NOTE")
            raise RuntimeError
        kept = enqueue("NOTE")
    assert calls == [{kept.pk}]


def test_what_was_rolled_back_is_not_handed_over_with_the_next(notes, calls):
    with pytest.raises(RuntimeError), transaction.atomic():
        enqueue("NOTE")
        raise RuntimeError
    kept = enqueue("NOTE")
    assert calls == [{kept.pk}]


def test_a_task_for_tomorrow_is_left_to_the_round(notes, calls):
    enqueue("NOTE", run_at=datetime.now(UTC) + timedelta(days=1))
    assert calls == []


def test_bulk_work_skips_it(notes, calls):
    enqueue("NOTE", fast_path_wanted=False)
    assert calls == []


def test_a_setting_turns_it_off(notes, calls, settings):
    settings.TEAMDESK_FAST_PATH = False
    enqueue("NOTE")
    assert calls == []


def test_nobody_waits_longer_than_the_limit(notes, monkeypatch):
    """Each wait for Redis may be short, and all of them together long."""
    monkeypatch.setattr(fast_path, "SECONDS", 0.01)
    go_on, ended = threading.Event(), threading.Event()

    def slow(tasks, *args, **kwargs):
        go_on.wait(30)
        ended.set()

    monkeypatch.setattr(queue, "add", slow)
    enqueue("NOTE")  # returns although the hand-over does not
    assert not ended.is_set()
    assert fast_path.rest.is_on
    go_on.set()
    assert ended.wait(30)


def test_the_rest_after_a_failure_is_for_all_threads(notes, monkeypatch, actor):
    calls = []

    def refuse(tasks, *args, **kwargs):
        calls.append(tasks)
        raise queue.QueueUnreachable("no")

    monkeypatch.setattr(queue, "add", refuse)
    enqueue("NOTE")
    actor("anna").do(enqueue, "NOTE")
    assert len(calls) == 1


def test_a_failure_is_swallowed_counted_and_followed_by_a_rest(notes, settings, calls):
    settings.REDIS_URL = f"unix://{services.FOLDER}/nobody.sock"
    settings.CELERY_BROKER_URL = f"redis+socket://{services.FOLDER}/nobody.sock"
    before = metrics.fast_path_failures._value.get()

    def refuse(tasks, *args, **kwargs):
        calls.append(set())
        raise queue.QueueUnreachable("no")

    queue.add, original = refuse, queue.add
    try:
        enqueue("NOTE")
        enqueue("NOTE")
    finally:
        queue.add = original
    assert metrics.fast_path_failures._value.get() == before + 1
    assert len(calls) == 1  # the second was not even tried
    assert BackgroundTask.objects.count() == 2
