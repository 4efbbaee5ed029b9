"""While all goes well: one claim, one transaction, and every task whole."""

from datetime import timedelta

import pytest

from tasks import batch, queue
from tasks.claim import claim
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask
from tasks.worker import run_jobs
from tests.tasks.batches.ledger import COMPLETED, jobs, reread
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)


def test_all_is_done_in_one_transaction(three, notes, groups):
    assert run_jobs(jobs(three), "m", 1, "short@here") == [COMPLETED] * 3
    assert groups == [3]
    assert notes() == [(task.pk, 0) for task in three]
    for task in three:
        attempt = task.attempts.get()
        assert (attempt.outcome, attempt.worker, attempt.attempt) == ("completed", "short@here", 1)
        assert attempt.finished_at
        after = reread(task)
        assert (after.status, after.execution_id, after.attempt) == (COMPLETED, None, 1)
        assert after.finished_at and after.started_at


def test_each_has_an_execution_of_its_own(three):
    tasks = claim(jobs(three), "here")
    assert len({task.execution_id for task in tasks}) == 3
    assert [task.pk for task in tasks] == [task.pk for task in three]
    for task in tasks:
        stored = reread(task)
        for field in BackgroundTask._meta.concrete_fields:
            assert getattr(task, field.attname) == getattr(stored, field.attname), field


def test_the_queue_hears_of_all_of_them(three, empty_queue):
    dispatch_once()
    message = queue.view_of(three).records[three[0].pk].message
    run_jobs(jobs(three), message, 5)
    for record in queue.view_of(three).records.values():
        assert (record.state, record.attempt, record.message) == ("completed", 1, message)
    assert queue.view_of(three).watermarks["short"] == 5


def test_the_queue_hears_of_a_batch_that_takes_time(three, handler, wait_until, monkeypatch):
    monkeypatch.setattr("tasks.renewal._MOMENT_SECONDS", 0.01)
    dispatch_once()
    message = queue.view_of(three).records[three[0].pk].message

    def handle(task, lease):
        def is_told():
            view = queue.view_of(three)
            states = {record.state for record in view.records.values()}
            return states == {"active"} and view.watermarks["short"] == 5

        wait_until(is_told)

    handler(handle)
    assert run_jobs(jobs(three), message, 5) == [COMPLETED] * 3


def test_a_message_that_is_delivered_twice_runs_once(three, notes):
    run_jobs(jobs(three), "m")
    assert run_jobs(jobs(three), "m") == [None] * 3
    assert len(notes()) == 3


def test_a_job_that_is_named_twice_in_a_message_runs_once(three, notes):
    assert run_jobs(jobs(three) * 2) == [COMPLETED] * 3
    assert len(notes()) == 3


def test_results_expire_by_their_kinds_policy(three, handler):
    handler(lambda task, lease: None, result_ttl=lambda: timedelta(hours=3))
    run_jobs(jobs(three))
    for task in three:
        after = reread(task)
        assert after.expires_at - after.finished_at == timedelta(hours=3)


def test_a_quick_handlers_effect_does_not_wait_for_slow_neighbours(
    three, notes, handler, groups, monkeypatch
):
    monkeypatch.setattr(batch, "_GROUP_AFTER_SECONDS", -1)
    handler(lambda task, lease: lambda: write_note(task))
    assert run_jobs(jobs(three)) == [COMPLETED] * 3
    assert groups == []  # each was committed before the next began
    assert len(notes()) == 3
