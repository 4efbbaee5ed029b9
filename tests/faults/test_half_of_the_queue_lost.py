"""Redis lost one half of what it knows and kept the other: messages or records, list or set.

Everything runs exactly once. What is still on its way is not sent again before its half minute is
over, and what is lost is sent again once, not at every look.
"""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tasks.records import LOST_AFTER_SECONDS
from tasks.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue


def body_of(message: dict) -> list:
    return json.loads(base64.b64decode(message["body"]))


@pytest.fixture
def seconds_pass(empty_queue):
    """``seconds_pass(31)``: everything handed over is as much older, in ledger and Redis alike."""

    def move(seconds):
        by, micros = timedelta(seconds=seconds), seconds * 1_000_000
        handed_over = BackgroundTask.objects.filter(dispatched_at__isnull=False)
        handed_over.update(dispatched_at=F("dispatched_at") - by)
        for key in empty_queue.scan_iter("teamdesk:job:*"):
            if empty_queue.hget(key, "state") != b"delayed":
                empty_queue.hincrby(key, "at", -micros)
        for mark in empty_queue.scan_iter("teamdesk:watermark:*"):
            empty_queue.decrby(mark, micros)
        for place, raw in enumerate(empty_queue.lrange("short", 0, -1)):
            message = json.loads(raw)
            args, kwargs, embedded = body_of(message)
            kwargs["published_at"] -= micros
            body = json.dumps([args, kwargs, embedded]).encode()
            message["body"] = base64.b64encode(body).decode()
            empty_queue.lset("short", place, json.dumps(message))

    return move


@pytest.fixture
def work(empty_queue):
    """``work()``: a worker takes all that is in the list, oldest first; ``work(1)`` as many."""

    def take(how_many=1_000):
        taken = 0
        while taken < how_many and (raw := empty_queue.rpop("short")):
            message = json.loads(raw)
            args, kwargs, _ = body_of(message)
            headers = message["headers"]
            assert headers["task"] == execute.name
            execute.apply(args, kwargs, task_id=headers["id"])
            taken += 1
        return taken

    return take


@pytest.fixture
def ten(notes):
    tasks = [enqueue("NOTE") for _ in range(10)]
    dispatch_once()
    return tasks


def once_each(tasks):
    return [(task.pk, 0) for task in tasks]


def test_the_list_is_lost_and_the_records_stay(
    ten, notes, empty_queue, seconds_pass, work, settings
):
    settings.TEAMDESK_RECHECK_SECONDS = 1  # the age of the message decides, not that of the look
    empty_queue.delete("short")
    seconds_pass(LOST_AFTER_SECONDS - 5)
    dispatch_once()
    assert empty_queue.llen("short") == 0  # they may be in a worker's hands: not yet lost
    seconds_pass(10)
    assert dispatch_once().readded == 10
    for _ in range(3):
        dispatch_once()
    assert empty_queue.llen("short") == 10
    work()
    assert notes() == once_each(ten)
    assert set(BackgroundTask.objects.values_list("attempt", flat=True)) == {1}


def test_a_worker_had_some_of_them_when_the_list_was_lost(
    ten, notes, empty_queue, seconds_pass, work
):
    work(4)
    empty_queue.delete("short")
    seconds_pass(31)
    assert dispatch_once().readded == 6
    assert work() == 6
    assert notes() == once_each(ten)


def test_half_of_the_list_is_lost_and_later_work_overtakes_it(
    ten, notes, empty_queue, seconds_pass, work
):
    """The list is not empty, so nothing is lost for sure until a later message has started."""
    empty_queue.ltrim("short", 0, 4)  # the five at its end, which are next, are gone
    seconds_pass(31)
    assert dispatch_once().readded == 0
    assert work() == 5
    later = enqueue("NOTE")
    dispatch_once()
    assert work() == 1  # published half a minute after the others: it has overtaken them
    last = enqueue("NOTE")
    dispatch_once()
    seconds_pass(31)
    assert empty_queue.llen("short") == 1
    assert dispatch_once().readded == 5
    assert work() == 6
    assert notes() == once_each([*ten, later, last])


def test_the_records_are_lost_and_the_list_stays(ten, notes, empty_queue, seconds_pass, work):
    for key in empty_queue.scan_iter("teamdesk:job:*"):
        empty_queue.delete(key)
    seconds_pass(31)
    assert dispatch_once().readded == 10
    for _ in range(5):
        seconds_pass(600)
        assert dispatch_once().readded == 0
    assert work() == 20  # one duplicate each, which the claim refuses
    assert notes() == once_each(ten)
    assert set(BackgroundTask.objects.values_list("attempt", flat=True)) == {1}


@pytest.mark.parametrize("lost", ["the set of delayed jobs", "its record"])
def test_a_job_that_is_not_yet_due_is_put_where_it_was(
    notes, empty_queue, seconds_pass, work, lost
):
    task = enqueue("NOTE", run_at=datetime.now(UTC) + timedelta(days=1))
    dispatch_once()
    score = empty_queue.zscore("teamdesk:delayed", task.job_id)
    if lost == "its record":
        empty_queue.delete(f"teamdesk:job:{task.job_id}")
    else:
        empty_queue.delete("teamdesk:delayed")
    seconds_pass(31)
    assert dispatch_once().readded == 1
    assert empty_queue.zscore("teamdesk:delayed", task.job_id) == score
    assert empty_queue.hget(f"teamdesk:job:{task.job_id}", "state") == b"delayed"
    seconds_pass(31)
    assert dispatch_once().readded == 0
    assert work() == 0


def test_the_watermark_is_lost_too(ten, notes, empty_queue, seconds_pass, work):
    work(5)
    empty_queue.delete("short", "teamdesk:watermark:short")
    seconds_pass(31)
    assert dispatch_once().readded == 5
    work()
    assert notes() == once_each(ten)


@pytest.mark.processes
@pytest.mark.parametrize("kept", ["records", "list"])
def test_real_workers_do_everything_once(
    processes, notes, empty_queue, seconds_pass, wait_until, kept
):
    tasks = [enqueue("NOTE") for _ in range(30)]
    dispatch_once()
    if kept == "records":
        empty_queue.delete("short")
    else:
        for key in empty_queue.scan_iter("teamdesk:job:*"):
            empty_queue.delete(key)
    seconds_pass(31)
    dispatch_once()
    processes.worker()
    done = BackgroundTask.objects.filter(status=TaskStatus.COMPLETED)
    ours = done.filter(pk__in=[task.pk for task in tasks])
    wait_until(lambda: ours.count() == 30, "all are done", 60)
    wait_until(lambda: empty_queue.llen("short") == 0, "duplicates are taken, too")
    assert notes() == once_each(tasks)
