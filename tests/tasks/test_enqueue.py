from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import IntegrityError, connection, transaction

from tasks.models import BackgroundTask, TaskStatus
from tasks.registry import UnknownKind
from tasks.worker import run_job

pytestmark = pytest.mark.django_db

enqueue = BackgroundTask.objects.enqueue


def test_it_waits_in_the_first_run_and_was_never_dispatched():
    task = enqueue("NOTE", payload={"ids": [1, 2]})
    task.refresh_from_db()
    assert (task.status, task.run, task.attempt, task.dispatched_at) == ("WAITING", 0, 0, None)
    assert task.max_attempts == 3  # from the kind's policy
    assert task.payload == {"ids": [1, 2]}
    assert task.execution_id is None


def test_it_keeps_the_time_it_was_given():
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert enqueue("NOTE", run_at=tomorrow).run_at == tomorrow


def test_it_is_gone_when_the_transaction_rolls_back():
    with pytest.raises(RuntimeError), transaction.atomic():
        enqueue("NOTE")
        raise RuntimeError
    assert not BackgroundTask.objects.exists()


def test_it_returns_the_live_holder_of_the_key():
    first = enqueue("NOTE", dedup_key="daily")
    assert enqueue("NOTE", dedup_key="daily").pk == first.pk
    assert BackgroundTask.objects.count() == 1


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_the_key_is_free_again_at_the_end(end, notes):
    first = enqueue("NOTE", dedup_key="daily")
    if end == "complete":
        run_job(first.pk, 0)
    else:
        first.cancel()
    assert enqueue("NOTE", dedup_key="daily").pk != first.pk


@pytest.mark.parametrize("payload", [{"x": {1, 2}}, {"x": float("nan")}, ["list"], "text"])
def test_it_refuses_what_is_no_json_object(payload):
    with pytest.raises(ValueError):
        enqueue("NOTE", payload=payload)


def test_it_refuses_a_kind_without_a_handler():
    with pytest.raises(UnknownKind, match="NOTE"):
        enqueue("NOET")


@pytest.mark.parametrize(
    "broken",
    [
        {"status": TaskStatus.RUNNING},
        {"status": TaskStatus.COMPLETED},
        {"execution_id": "00000000-0000-0000-0000-000000000001"},
        {"run": -1},
    ],
)
def test_the_table_refuses_impossible_rows(broken):
    with pytest.raises(IntegrityError), transaction.atomic():
        BackgroundTask.objects.create(kind="NOTE", **broken)


@pytest.mark.parametrize(
    "run_at",
    [
        "tomorrow",
        datetime(2026, 6, 1),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=8))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-8))),
        datetime.max.replace(tzinfo=UTC),
    ],
    ids=str,
)
def test_a_time_that_cannot_be_read_back_is_refused(notes, run_at):
    with pytest.raises(ValueError):
        enqueue("NOTE", run_at=run_at)
    assert not BackgroundTask.objects.exists()


def test_the_database_itself_refuses_such_a_time(notes):
    enqueue("NOTE")
    with pytest.raises(IntegrityError, match="run_at_is_readable"), transaction.atomic():
        connection.cursor().execute("UPDATE tasks_backgroundtask SET run_at = 'infinity'")


def test_a_payload_that_cannot_be_stored_is_refused(notes):
    with pytest.raises(ValueError, match="NUL"):
        enqueue("NOTE", payload={"text": "a\0b"})
    text = {"text": "a\\u0000b"}  # a backslash and six letters
    assert enqueue("NOTE", payload=text).payload == text
