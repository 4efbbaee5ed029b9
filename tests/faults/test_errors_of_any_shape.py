"""Whatever a handler raises, its attempt is closed, and neither ledger nor log grow with it."""

import logging

import pytest

from tasks.dispatcher import dispatch_once
from tasks.errors import TEXT_LIMIT, TRACEBACK_LIMIT
from tasks.models import BackgroundTask, TaskStatus
from tasks.registry import PermanentFailure
from tasks.worker import run_job
from tests.faults import kinds

enqueue = BackgroundTask.objects.enqueue

LOG_LIMIT = 10_000  # characters that one failed attempt may cost a log


def assert_stored_within_bounds(task):
    """Its attempt is closed; what is stored of the error can be read back, and is not too much."""
    task.refresh_from_db()
    attempt = task.attempts.get()
    assert attempt.outcome == "failed"
    assert attempt.finished_at
    for text, limit in (
        (task.last_error, TEXT_LIMIT),
        (attempt.error, TEXT_LIMIT),
        (attempt.traceback, TRACEBACK_LIMIT),
    ):
        assert 0 < len(text) <= limit
        assert "\0" not in text
        text.encode()  # no lone surrogates


@pytest.mark.django_db
@pytest.mark.parametrize("shape", kinds.SHAPES)
def test_the_attempt_is_closed_and_its_text_is_cut_and_clean(notes, caplog, shape):
    task = enqueue("RAISES", payload={"shape": shape})
    with caplog.at_level(logging.DEBUG):
        assert run_job(task.pk, 0) == TaskStatus.WAITING
    assert_stored_within_bounds(task)
    assert task.last_error.startswith(kinds.SHOWN[shape])
    assert sum(len(record.getMessage()) for record in caplog.records) < LOG_LIMIT


@pytest.mark.django_db
@pytest.mark.parametrize("shape", kinds.SHAPES)
def test_so_it_is_when_the_effect_raises_it(notes, shape):
    task = enqueue("RAISES", payload={"shape": shape, "in": "effect"})
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    assert_stored_within_bounds(task)
    assert notes(task) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("shape", kinds.SHAPES)
def test_so_it_is_on_the_last_attempt(notes, shape):
    task = enqueue("RAISES", payload={"shape": shape})
    BackgroundTask.objects.filter(pk=task.pk).update(max_attempts=1)
    assert run_job(task.pk, 0) == TaskStatus.FAILED
    assert_stored_within_bounds(task)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 50_000_000, "xxx"),
        ("no\0where", "no�where"),
        ("\ud800", "?"),
        ("", "PermanentFailure"),
        (kinds.UNPRINTABLE, "(its text could not be made)"),
    ],
    ids=["50 MB", "NUL", "lone surrogate", "empty", "no text"],
)
def test_a_permanent_failure_of_any_shape_ends_failed(notes, monkeypatch, text, shown):
    def hopeless(task, lease):
        raise PermanentFailure(text)

    kinds.use(monkeypatch, "RAISES", hopeless)
    task = enqueue("RAISES")
    assert run_job(task.pk, 0) == TaskStatus.FAILED
    assert_stored_within_bounds(task)
    assert task.last_error.startswith(shown)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_worker_survives_them_all_and_its_log_stays_small(processes, notes, wait_until, reread):
    worker = processes.worker(include="tests.faults.kinds")
    before = len(worker.output)
    tasks = [enqueue("RAISES", payload={"shape": shape}) for shape in kinds.SHAPES]
    last = enqueue("NOTE")
    dispatch_once()
    closed = BackgroundTask.objects.filter(kind="RAISES", attempts__outcome="failed")
    wait_until(lambda: closed.count() == len(tasks), "every attempt is closed", 60)
    wait_until(lambda: reread(last).status == TaskStatus.COMPLETED)
    for task in tasks:
        assert_stored_within_bounds(task)
    assert worker.is_running()
    assert len(worker.output) - before < LOG_LIMIT * len(tasks)
