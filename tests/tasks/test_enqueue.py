from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

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


def test_it_refuses_a_large_payload_and_leaves_the_transaction_usable():
    with transaction.atomic():
        with pytest.raises(ValueError, match="16384"):
            enqueue("NOTE", payload={"text": "字" * 6000})
        enqueue("NOTE", payload={"text": "字" * 5000})
    assert BackgroundTask.objects.count() == 1


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
