"""Connections to Redis are kept, and what happens to Redis meanwhile does not show."""

import os
import signal
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tasks import queue
from tasks.models import BackgroundTask
from tasks.queue import QueueUnreachable, connections, publishing
from tests import services

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def task(db):
    return BackgroundTask.objects.with_is_due().get(pk=enqueue("NOTE").pk)


@pytest.fixture(autouse=True)
def _fresh():
    connections._clients.clear()
    publishing._kept.clear()


@contextmanager
def frozen():
    """It keeps its connections open and answers nothing; later it answers everything at once."""
    os.kill(services.valkey.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(services.valkey.process.pid, signal.SIGCONT)


def connected(client) -> int:
    return client.info("stats")["total_connections_received"]


def test_conversations_share_connections(task, empty_queue):
    queue.add([task])
    queue.mark_started(task.job_id, "m", "short", 1)
    before = connected(empty_queue)
    for _ in range(5):
        queue.add([task])
        queue.mark_started(task.job_id, "m", "short", 1)
    assert connected(empty_queue) == before
    assert empty_queue.llen("short") == 6


def test_a_redis_that_was_restarted_is_used_at_once(task, empty_queue):
    queue.add([task])
    queue.mark_started(task.job_id, "m", "short", 1)
    with services.valkey_killed():
        pass
    queue.mark_started(task.job_id, "m", "short", 7)
    assert queue.add([task]) == 1
    assert empty_queue.llen("short") == 1
    view = queue.view_of([task])
    assert view.records[task.pk].state == "waiting"
    assert view.watermarks["short"] == 7


def test_a_redis_that_was_emptied_takes_messages_at_once(task, empty_queue):
    queue.add([task])
    empty_queue.flushall()
    queue.add([task])
    assert empty_queue.llen("short") == 1
    assert queue.view_of([task]).records[task.pk].state == "waiting"


def test_a_redis_that_was_frozen_is_asked_again_and_answers_what_was_asked(task):
    queue.view_of([task], patience=0.2)
    queue.add([task], patience=0.2)
    with frozen():
        with pytest.raises(QueueUnreachable):
            queue.view_of([task], patience=0.2)
        with pytest.raises(QueueUnreachable):
            queue.add([task], patience=0.2)
    # Late answers belong to closed connections.
    assert queue.lengths(patience=0.2)["delayed"] == 0
    assert queue.view_of([task], patience=0.2).records[task.pk] is not None
    assert queue.add([task], patience=0.2) == 1


def test_each_thread_has_a_connection_of_its_own(task, empty_queue):
    start, errors = threading.Barrier(8), []

    def publish():
        try:
            start.wait(30)
            for _ in range(10):
                queue.add([task])
                assert queue.view_of([task]).records[task.pk].state == "waiting"
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=publish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert empty_queue.llen("short") == 80
    assert all(len(kept) <= publishing._KEPT for kept in publishing._kept.values())


def test_a_message_is_published_when_redis_says_even_if_its_first_answer_takes_long(monkeypatch):
    """A clock that is read over a connection which had to be made first."""
    now = [0.0]

    def answer():
        now[0] += 5
        return 100, 0

    publisher = publishing._Publisher(patience=2)
    channel = SimpleNamespace(client=SimpleNamespace(time=answer))
    publisher.producer = SimpleNamespace(channel=channel)
    monkeypatch.setattr(publishing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert publisher.redis_time() == 100_000_000
    now[0] += 1
    assert publisher.redis_time() == 101_000_000
