"""Leases of a batch: renewed together, lost and released each alone."""

import pytest
from django.db.models.functions import Now

from tasks import registry
from tasks.models import BackgroundTask
from tasks.worker import run_jobs
from tests.tasks.batches.ledger import COMPLETED, WAITING, jobs, outcomes, reread
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)


def test_all_leases_are_renewed_and_one_that_was_taken_is_told(
    three, notes, settings, handler, wait_until
):
    settings.TEAMDESK_RENEWAL_SECONDS = 0.05
    BackgroundTask.objects.filter(pk__in=[task.pk for task in three]).update(updated_at=Now())
    seen = {}

    def handle(task, lease):
        if task.pk == three[0].pk:
            before = {task.pk: reread(task).updated_at for task in three}
            reread(three[2]).cancel()
            wait_until(lambda: reread(three[0]).updated_at > before[three[0].pk])
            wait_until(lambda: reread(three[1]).updated_at > before[three[1].pk])
        seen[task.pk] = True
        return lambda: write_note(task)

    handler(handle)
    assert run_jobs(jobs(three)) == [COMPLETED, COMPLETED, None]
    assert three[2].pk not in seen  # told by the renewal, before its handler began
    assert len(notes()) == 2


def test_handlers_that_did_not_begin_in_time_are_released_at_no_cost(three, notes, handler):
    handler(lambda task, lease: lambda: write_note(task))
    original, registry.BATCH_SECONDS = registry.BATCH_SECONDS, -1
    try:
        assert run_jobs(jobs(three)) == [WAITING] * 3
    finally:
        registry.BATCH_SECONDS = original
    for task in three:
        after = reread(task)
        assert (after.attempt, after.max_attempts, after.dispatched_at) == (1, 4, None)
        assert outcomes(task) == ["released"]
    assert notes() == []


def test_a_hung_handler_fails_its_attempt_and_the_others_are_released(
    three, notes, handler, monkeypatch
):
    """The pool ends the process by SystemExit, past the hard limit."""

    def handle(task, lease):
        if task.pk == three[1].pk:
            lease._began_at -= 3600  # it hung for an hour
            raise SystemExit
        return lambda: write_note(task)

    handler(handle)
    with pytest.raises(SystemExit):
        run_jobs(jobs(three))
    assert [outcomes(task) for task in three] == [["released"], ["failed"], ["released"]]
    assert "time limit" in reread(three[1]).last_error
    assert [reread(task).max_attempts for task in three] == [4, 3, 4]
    assert notes() == []
