"""Which tasks travel in one message, and what it says."""

import json

import pytest

from tasks import queue, registry
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask
from tasks.registry import Kind, handles
from tasks.worker import run_job
from tests.tasks.batches.ledger import enqueue
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)


def test_first_attempts_of_a_kind_share_messages(notes, empty_queue):
    tasks = [enqueue() for _ in range(12)] + [BackgroundTask.objects.enqueue("NOTE")]
    assert dispatch_once().enqueued == 13
    assert empty_queue.llen("short") == 3  # ten, two, and the other kind's
    records = queue.view_of(tasks).records
    messages = [records[task.pk].message for task in tasks]
    assert len(set(messages)) == 3
    assert {messages.count(message) for message in messages} == {10, 2, 1}


def test_a_task_with_an_attempt_behind_it_travels_alone(three, empty_queue):
    run_job(three[0].pk, 0)
    claimed = Lease.claim(three[1].pk, 0)
    claimed.release()
    enqueue()
    dispatch_once()
    assert empty_queue.llen("short") == 2


def test_a_message_is_of_one_queue_and_one_kind(notes, handler, monkeypatch, empty_queue):
    monkeypatch.setitem(
        registry._kinds, "LONG_NOTE", Kind("LONG_NOTE", write_note, queue="long", batch=10)
    )
    for _ in range(3):
        enqueue()
        BackgroundTask.objects.enqueue("LONG_NOTE")
    dispatch_once()
    assert (empty_queue.llen("short"), empty_queue.llen("long")) == (1, 1)


def test_a_message_says_which_jobs_it_carries_and_how_long_they_may_take(three, empty_queue):
    dispatch_once()
    (raw,) = empty_queue.lrange("short", 0, -1)
    message = json.loads(raw)
    assert message["headers"]["timelimit"][0] == 60 + 30 + registry.BATCH_SECONDS
    assert "jobs" in message["headers"]["kwargsrepr"]


def test_messages_of_earlier_releases_are_understood():
    assert queue.jobs_of({"task_id": 7, "run": 1}) == [(7, 1)]
    assert queue.jobs_of({"jobs": [[7, 1], [8, 0]]}) == [(7, 1), (8, 0)]


@pytest.mark.parametrize(("policy", "why"), [({"batch": 0}, "batch"), ({"ladder": ()}, "attempt")])
def test_a_batch_that_could_cost_a_neighbour_everything_is_refused(policy, why):
    with pytest.raises(ValueError, match=why):
        handles("CROWD", **{"batch": 5} | policy)(lambda task, lease: None)
