"""A payload that is too large, or cannot be stored, is refused before anything is committed."""

import json

import pytest
from django.db import connection, transaction

from tasks.models import BackgroundTask, TaskStatus
from tasks.models.queryset import PAYLOAD_LIMIT
from tasks.worker import run_job
from tickets.models import Ticket

pytestmark = pytest.mark.django_db

enqueue = BackgroundTask.objects.enqueue


def payload_of(size: int, letter: str = "x") -> dict:
    """A payload whose JSON is ``size`` bytes of UTF-8, filled with ``letter`` as far as it goes."""
    room = size - len(json.dumps({"text": ""}))
    count, rest = divmod(room, len(letter.encode()))
    payload = {"text": letter * count + "x" * rest}
    assert len(json.dumps(payload, ensure_ascii=False).encode()) == size
    return payload


def nested(depth: int):
    value = []
    for _ in range(depth):
        value = [value]
    return value


LETTERS = {"one byte": "x", "three bytes": "字", "four bytes": "🖨"}
REFUSED = {
    "one byte more": payload_of(PAYLOAD_LIMIT + 1),
    "one byte more in few letters": payload_of(PAYLOAD_LIMIT + 1, "字"),
    "5 MB": {"text": "x" * 5_000_000},
    "many keys": {str(number): number for number in range(5_000)},
    "NUL": {"text": "no\0where"},
    "NUL in a key": {"no\0where": 1},
    "lone surrogate": {"text": "\ud800"},
    "nested too deep": {"list": nested(5_000)},
    "a number too long to be read back": {"number": 10**4_500},
}


@pytest.mark.parametrize("letter", LETTERS.values(), ids=LETTERS)
def test_exactly_at_the_limit_it_is_accepted_and_comes_back_whole(notes, reread, letter):
    payload = payload_of(PAYLOAD_LIMIT, letter)
    task = enqueue("NOTE", payload=payload)
    assert reread(task).payload == payload
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED


@pytest.mark.parametrize("letter", LETTERS.values(), ids=LETTERS)
def test_one_byte_beyond_it_is_refused_whatever_its_letters(letter):
    """The limit is of bytes as they are stored, so it does not depend on the language."""
    with pytest.raises(ValueError, match=f"{PAYLOAD_LIMIT + 1} bytes, more than {PAYLOAD_LIMIT}"):
        enqueue("NOTE", payload=payload_of(PAYLOAD_LIMIT + 1, letter))


@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED)
def test_the_business_rows_go_with_it_if_the_caller_lets_it_through(alice, support, payload):
    with pytest.raises(ValueError), transaction.atomic():
        Ticket.objects.open(by=alice, team=support, subject="The lift is stuck")
        enqueue("NOTE", payload=payload)
    assert not Ticket.objects.exists()
    assert not BackgroundTask.objects.exists()


@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED)
def test_a_caller_that_catches_it_keeps_its_transaction(alice, support, payload):
    """It is refused before PostgreSQL sees it, so nothing is aborted."""
    with transaction.atomic():
        Ticket.objects.open(by=alice, team=support, subject="The lift is stuck")
        with pytest.raises(ValueError):
            enqueue("NOTE", payload=payload)
        assert not connection.needs_rollback
        enqueue("NOTE", payload={"too": "large"})
    assert Ticket.objects.count() == 1
    assert BackgroundTask.objects.get().payload == {"too": "large"}


def test_a_live_holder_of_the_key_keeps_its_payload(reread):
    holder = enqueue("NOTE", dedup_key="report", payload={"ids": [1]})
    with pytest.raises(ValueError):
        enqueue("NOTE", dedup_key="report", payload=payload_of(PAYLOAD_LIMIT + 1))
    assert reread(holder).payload == {"ids": [1]}
