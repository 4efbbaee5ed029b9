"""The queue's records: what is decided from them, and that they never go backwards."""

import socket
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tasks import queue, scripts
from tasks.models import BackgroundTask
from tasks.queue import QueueUnreachable, handing
from tasks.records import Record, State, Verdict, View, judge, microseconds
from tasks.registry import handles
from tests import services

enqueue = BackgroundTask.objects.enqueue

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = 1_000_000


def waiting(attempt=0, run_at=NOW, is_due=True):
    return SimpleNamespace(pk=1, run=0, kind="NOTE", attempt=attempt, run_at=run_at, is_due=is_due)


def record(state, attempt=1, age=0, score=None):
    return Record(state, attempt, "m", microseconds(NOW) - age * SECOND, score=score)


def view(length=1, watermark_age=None):
    now = microseconds(NOW)
    mark = 0 if watermark_age is None else now - watermark_age * SECOND
    return View(now, lengths={"short": length}, watermarks={"short": mark})


TOMORROW = NOW + timedelta(days=1)


@pytest.mark.parametrize(
    ("what", "task", "found", "seen", "verdict"),
    [
        ("no record", waiting(), None, view(), Verdict.ADD),
        ("failed before its claim", waiting(), record(State.FAILED, 1), view(), Verdict.FAILED),
        ("failed and recovered", waiting(1), record(State.FAILED, 1), view(), Verdict.FAILED),
        ("failed long ago", waiting(2), record(State.FAILED, 1), view(), Verdict.ADD),
        ("of a claimed attempt", waiting(1), record(State.ACTIVE, 1), view(), Verdict.ADD),
        ("the queue says completed", waiting(), record(State.COMPLETED), view(), Verdict.ADD),
        (
            "delayed in its place",
            waiting(run_at=TOMORROW, is_due=False),
            record(State.DELAYED, score=microseconds(TOMORROW)),
            view(),
            Verdict.NOTHING,
        ),
        (
            "delayed to another time",
            waiting(run_at=TOMORROW, is_due=False),
            record(State.DELAYED, score=microseconds(NOW)),
            view(),
            Verdict.ADD,
        ),
        (
            "delayed but not in the set",
            waiting(run_at=TOMORROW, is_due=False),
            record(State.DELAYED),
            view(),
            Verdict.ADD,
        ),
        ("just published", waiting(), record(State.WAITING, age=5), view(0), Verdict.NOTHING),
        (
            "waits in a long list",
            waiting(),
            record(State.WAITING, age=3600),
            view(),
            Verdict.NOTHING,
        ),
        ("its list is empty", waiting(), record(State.WAITING, age=31), view(0), Verdict.ADD),
        ("started, never claimed", waiting(), record(State.ACTIVE, age=31), view(0), Verdict.ADD),
        (
            "a later message has started",
            waiting(),
            record(State.WAITING, age=60),
            view(5, watermark_age=29),
            Verdict.ADD,
        ),
        (
            "a slightly later message has started",
            waiting(),
            record(State.WAITING, age=60),
            view(5, watermark_age=31),
            Verdict.NOTHING,
        ),
        (
            "published before Redis's clock was set back",
            waiting(),
            record(State.WAITING, age=-3600),
            view(),
            Verdict.ADD,
        ),
        (
            "a watermark from before the clock was set back",
            waiting(),
            record(State.WAITING, age=60),
            view(watermark_age=-3600),
            Verdict.NOTHING,
        ),
        (
            "lost but not due",
            waiting(is_due=False),
            record(State.WAITING, age=60),
            view(0),
            Verdict.NOTHING,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_the_record_of_a_waiting_task_is_judged(what, task, found, seen, verdict):
    assert judge(task, found, seen) == verdict


@pytest.fixture
def task(db):
    return BackgroundTask.objects.with_is_due().get(pk=enqueue("NOTE").pk)


def found(task):
    return queue.view_of([task]).records[task.pk]


def test_a_due_task_is_published_and_recorded(task, empty_queue):
    assert queue.add([task]) == 1
    assert empty_queue.llen("short") == 1
    seen = found(task)
    assert (seen.state, seen.attempt) == (State.WAITING, 1)
    assert 0 < empty_queue.ttl(f"teamdesk:job:{task.job_id}") <= 86_400


def test_a_long_kind_goes_to_the_long_queue(db, empty_queue):
    task = BackgroundTask.objects.with_is_due().get(pk=enqueue("LONG_NOTE").pk)
    queue.add([task])
    assert (empty_queue.llen("short"), empty_queue.llen("long")) == (0, 1)


def test_a_task_for_tomorrow_waits_in_the_delayed_set(db, empty_queue):
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    pk = enqueue("NOTE", run_at=tomorrow).pk
    task = BackgroundTask.objects.with_is_due().get(pk=pk)
    queue.add([task])
    assert empty_queue.llen("short") == 0
    assert found(task).score == microseconds(tomorrow)
    assert 86_400 < empty_queue.ttl(f"teamdesk:job:{task.job_id}") <= 2 * 86_400


def test_a_task_for_a_later_century_is_found_in_its_place(db):
    run_at = datetime(2400, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    pk = enqueue("NOTE", run_at=run_at).pk
    task = BackgroundTask.objects.with_is_due().get(pk=pk)
    queue.add([task])
    assert judge(task, found(task), queue.view_of([task])) == Verdict.NOTHING


def test_a_due_task_leaves_the_delayed_set_when_it_is_published(task, empty_queue):
    empty_queue.zadd("teamdesk:delayed", {task.job_id: 1})
    queue.add([task])
    assert empty_queue.zcard("teamdesk:delayed") == 0


def published(task):
    queue.add([task])
    return found(task).message


def test_the_workers_marks_go_forward(task):
    message = published(task)
    for mark, state in (
        (lambda: queue.mark_started(task.job_id, message, "short", 5), State.ACTIVE),
        (lambda: queue.mark_claimed({task.job_id: 1}, message), State.ACTIVE),
        (lambda: queue.mark_failed(task.job_id, message, "boom"), State.FAILED),
        (lambda: queue.mark_ended(task.job_id, message), State.COMPLETED),
    ):
        mark()
        assert found(task).state == state


def test_the_workers_marks_never_go_backwards(task):
    message = published(task)
    queue.mark_ended(task.job_id, message)
    queue.mark_started(task.job_id, message, "short", 5)
    queue.mark_failed(task.job_id, message, "late")
    assert found(task).state == State.COMPLETED


def test_a_mark_for_another_message_is_ignored(task):
    old = published(task)
    new = published(task)
    queue.mark_failed(task.job_id, old, "the old process died")
    assert (found(task).state, found(task).message) == (State.WAITING, new)


def test_a_worker_that_ends_before_the_publisher_records_is_not_undone(task, empty_queue):
    """The publisher records after publishing; a fast worker may be done by then."""
    message = published(task)
    queue.mark_ended(task.job_id, message)
    scripts.RECORD_PUBLISHED(
        client=empty_queue,
        keys=["teamdesk:delayed", f"teamdesk:job:{task.job_id}"],
        args=[message, 1, 100, 1, task.job_id],
    )
    assert found(task).state == State.COMPLETED


def test_an_ended_jobs_record_goes_within_a_minute(task, empty_queue):
    queue.mark_ended(task.job_id, published(task))
    assert 0 < empty_queue.ttl(f"teamdesk:job:{task.job_id}") <= 60


def test_a_kind_on_a_queue_without_workers_is_refused():
    with pytest.raises(ValueError, match="medium"):
        handles("NOBODY", queue="medium")(lambda task, lease: None)


def test_each_start_raises_the_watermark_and_none_lowers_it(task):
    for at in (10, 30, 20):
        queue.mark_started(task.job_id, "m", "short", at)
    assert queue.view_of([task]).watermarks["short"] == 30


def test_a_watermark_from_before_the_clock_was_set_back_is_lowered(task, empty_queue):
    now = microseconds(datetime.now(UTC))
    empty_queue.set("teamdesk:watermark:short", now + 3600 * SECOND)
    queue.mark_started(task.job_id, "m", "short", now)
    assert queue.view_of([task]).watermarks["short"] == now


def test_an_unreadable_watermark_counts_as_none(task, empty_queue):
    empty_queue.set("teamdesk:watermark:short", "high")
    assert queue.view_of([task]).watermarks["short"] == 0
    queue.mark_started(task.job_id, "m", "short", 5)
    assert queue.view_of([task]).watermarks["short"] == 5


def test_a_delayed_job_is_dropped_only_at_the_score_that_was_seen(task, empty_queue):
    empty_queue.zadd("teamdesk:delayed", {"1:0": 5, "2:0": 6})
    queue.drop_delayed([("1:0", 5), ("2:0", 5)])
    assert empty_queue.zrange("teamdesk:delayed", 0, -1) == [b"2:0"]


@pytest.mark.parametrize(
    "garbage",
    [
        {"state": "asleep"},
        {"attempt": "x"},
        {"state": "waiting", "attempt": "x"},
        {b"\xff": b"\xff"},
    ],
)
def test_an_unreadable_record_counts_as_none(task, empty_queue, garbage):
    empty_queue.hset(f"teamdesk:job:{task.job_id}", mapping=garbage)
    assert found(task) is None


@pytest.fixture
def silent_redis(settings):
    """A peer that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        url = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        settings.REDIS_URL = url
        yield url


def test_a_silent_redis_ends_a_conversation_in_time(task, silent_redis):
    done = threading.Event()

    def ask():
        with pytest.raises(QueueUnreachable):
            queue.view_of([task], patience=0.2)
        done.set()

    threading.Thread(target=ask, daemon=True).start()
    assert done.wait(10), "it hangs"


def test_many_cancels_wait_for_a_silent_redis_once(task, silent_redis, monkeypatch):
    asked, original = [], handing.conversation

    def counted(*args):
        asked.append(args)
        return original(*args)

    monkeypatch.setattr(handing, "conversation", counted)
    for job in range(5):
        queue.forget([f"{job}:0"])
    assert len(asked) == 1


def test_an_absent_redis_is_an_error_of_its_own(task, settings):
    settings.REDIS_URL = f"unix://{services.FOLDER}/nobody.sock"
    with pytest.raises(QueueUnreachable):
        queue.view_of([task])
    queue.mark_started(task.job_id, "m", "short", 1)  # a worker goes on without
    queue.mark_delayed(task, "m")
    queue.forget([task.job_id])


@pytest.mark.parametrize("place", ["job", "watermark"])
def test_a_key_of_another_type_counts_as_none_and_is_replaced(task, empty_queue, place):
    """One such key would stop every round that meets it."""
    strange = {"job": f"teamdesk:job:{task.job_id}", "watermark": "teamdesk:watermark:short"}[place]
    for put_back in (
        lambda: queue.mark_started(task.job_id, "m", "short", 5),
        lambda: queue.add([task]),
        lambda: queue.mark_delayed(task, "m"),
    ):
        empty_queue.delete(strange)
        empty_queue.lpush(strange, "what")
        assert found(task) is None or place == "watermark"
        assert queue.view_of([task]).watermarks["short"] in (0, 5)
        put_back()
        assert found(task) is not None


def test_an_early_job_goes_back_only_while_no_other_message_is_out(task, empty_queue):
    old, new = published(task), published(task)
    queue.mark_delayed(task, old)
    assert (found(task).state, found(task).message) == (State.WAITING, new)
    assert empty_queue.zcard("teamdesk:delayed") == 0
    queue.mark_delayed(task, new)
    assert found(task).state == State.DELAYED
    assert empty_queue.zcard("teamdesk:delayed") == 1


def test_an_early_job_without_a_record_goes_back(task, empty_queue):
    queue.mark_delayed(task, "m")
    assert found(task).state == State.DELAYED
