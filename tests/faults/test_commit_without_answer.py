"""A commit around which the connection is lost: it never arrived, or it did and nobody was told."""

import pytest
from django.db import connection

from tasks import recovery
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tests.faults import kinds
from tests.faults.proxy import through
from tests.tasks.kinds import write_note

pytestmark = [pytest.mark.usefixtures("no_pauses"), pytest.mark.django_db(transaction=True)]

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def distant(actor, postgres_proxy):
    """A worker that reaches PostgreSQL through the proxy."""
    distant = actor("distant")
    distant.do(through, postgres_proxy)
    return distant


def test_a_finish_whose_commit_never_arrived_is_repeated(
    notes,
    distant,
    postgres_proxy,
    terminate,
    wait_until,
    reread,
    monkeypatch,
):
    pids = []

    def handler(task, lease):
        pids.append(connection.connection.info.backend_pid)
        postgres_proxy.silence_at(b"COMMIT")
        return lambda: write_note(task)

    kinds.use(monkeypatch, "NOTE", handler)
    task = enqueue("NOTE")
    finish = distant.start(run_job, task.pk, 0)
    wait_until(postgres_proxy.is_silent, "COMMIT is on its way")
    terminate(pids[0])
    postgres_proxy.heal()
    assert finish.result(30) == TaskStatus.COMPLETED
    assert (reread(task).attempt, notes(task)) == (1, 1)
    assert task.attempts.get().outcome == "completed"


def test_a_finish_that_was_committed_without_an_answer_is_not_doubled(
    notes,
    distant,
    postgres_proxy,
    reread,
    monkeypatch,
):
    """The worker cannot know. It tries again, and its own fence refuses it."""
    effects = []

    def handler(task, lease):
        postgres_proxy.cut_at_the_answer_to(b"COMMIT")
        return lambda: (effects.append(task.pk), write_note(task))

    kinds.use(monkeypatch, "NOTE", handler)
    task = enqueue("NOTE")
    assert distant.do(run_job, task.pk, 0) is None
    after = reread(task)
    assert (after.status, after.attempt, after.last_error) == (TaskStatus.COMPLETED, 1, "")
    assert task.attempts.get().outcome == "completed"
    assert len(effects) == 2, "it was tried again"
    assert notes(task) == 1, "and had no effect"


def test_a_failure_that_was_committed_without_an_answer_counts_once(
    notes,
    distant,
    postgres_proxy,
    reread,
    monkeypatch,
):
    def handler(task, lease):
        postgres_proxy.cut_at_the_answer_to(b"COMMIT")
        raise ConnectionError("the printer is on fire")

    kinds.use(monkeypatch, "NOTE", handler, ladder=(60, 300))
    task = enqueue("NOTE")
    assert distant.do(run_job, task.pk, 0) is None
    after = reread(task)
    assert (after.status, after.attempt) == (TaskStatus.WAITING, 1)
    assert after.last_error == "ConnectionError: the printer is on fire"
    assert task.attempts.get().outcome == "failed"


def test_a_claim_that_was_committed_without_an_answer_is_found_again(
    notes, distant, postgres_proxy, reread
):
    """The worker repeats its claim and knows the execution as its own; no lease runs out."""
    task = enqueue("NOTE")
    distant.do(connection.ensure_connection)
    postgres_proxy.cut_at_the_answer_to(b"WITH asked")
    assert distant.do(run_job, task.pk, 0) == TaskStatus.COMPLETED
    assert reread(task).attempt == 1
    assert task.attempts.get().outcome == "completed"
    assert notes(task) == 1


def test_a_recovery_that_was_committed_without_an_answer_costs_nothing_more(
    notes,
    distant,
    postgres_proxy,
    reread,
    lease_runs_out,
):
    task = enqueue("NOTE")
    assert Lease.claim(task.pk, 0)
    lease_runs_out()
    expired = list(BackgroundTask.objects.with_expired_lease())
    assert [one.pk for one in expired] == [task.pk]
    distant.do(connection.ensure_connection)
    postgres_proxy.cut_at_the_answer_to(b"COMMIT")
    distant.do(recovery.recover_together, expired)
    after = reread(task)
    assert (after.status, after.attempt) == (TaskStatus.WAITING, 1)
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED
    outcomes = list(task.attempts.values_list("outcome", flat=True))
    assert outcomes == ["lease_expired", "completed"]
    assert notes(task) == 1
