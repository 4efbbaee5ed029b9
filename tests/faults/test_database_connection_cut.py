"""The connection to PostgreSQL is cut around a finish: nothing is lost and nothing is doubled."""

import pytest
from django.db import OperationalError, connection

from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tests.faults import kinds
from tests.tasks.kinds import write_note

pytestmark = [pytest.mark.usefixtures("no_pauses"), pytest.mark.django_db(transaction=True)]

enqueue = BackgroundTask.objects.enqueue


class Scissors:
    """Cuts this thread's connection before or after a statement, ``times`` times, once armed."""

    def __init__(self, terminate, when: str, pattern: str, times: int = 1):
        self._terminate, self._when, self._pattern = terminate, when, pattern
        self.left, self.cuts = times, 0
        self.armed = False

    def __call__(self, execute, sql, params, many, context):
        fits = self.armed and self.left and self._pattern in sql
        if fits and self._when == "before":
            self._cut()
        result = execute(sql, params, many, context)
        if fits and self._when == "after":
            self._cut()
        return result

    def _cut(self):
        self.left -= 1
        self.cuts += 1
        self._terminate(connection.connection.info.backend_pid)


PLACES = {
    "before the effect": ("before", "test_notes"),
    "between effect and ledger": ("after", "test_notes"),
    "before the ledger": ("before", "tasks_backgroundtask"),
    "between ledger and attempt": ("after", "tasks_backgroundtask"),
    "just before the commit": ("after", "tasks_taskattempt"),
}
EFFECT_PLACES = [place for place, (_, pattern) in PLACES.items() if pattern == "test_notes"]
LEDGER_PLACES = [place for place in PLACES if place not in EFFECT_PLACES]


@pytest.fixture
def cut(actor, terminate, monkeypatch):
    """``cut(place)`` → scissors, and the worker whose connection they cut when it finishes."""

    def prepare(place, times=1, fails=False):
        scissors = Scissors(terminate, *PLACES[place], times)
        worker = actor("worker")
        worker.do(lambda: connection.execute_wrappers.append(scissors))

        def handler(task, lease):
            scissors.armed = True
            if fails:
                raise ConnectionError("the printer is on fire")
            return lambda: write_note(task)

        kinds.use(monkeypatch, "NOTE", handler, ladder=(60, 300))
        return scissors, worker

    return prepare


@pytest.mark.parametrize("place", PLACES)
def test_a_finish_is_repeated_on_a_new_connection(notes, cut, reread, place):
    scissors, worker = cut(place)
    task = enqueue("NOTE")
    assert worker.do(run_job, task.pk, 0) == TaskStatus.COMPLETED
    assert scissors.cuts == 1
    after = reread(task)
    assert (after.status, after.attempt) == (TaskStatus.COMPLETED, 1)
    assert task.attempts.get().outcome == "completed"
    assert notes(task) == 1


@pytest.mark.parametrize("place", LEDGER_PLACES)
def test_a_failure_is_recorded_on_a_new_connection(notes, cut, reread, place):
    scissors, worker = cut(place, fails=True)
    task = enqueue("NOTE")
    assert worker.do(run_job, task.pk, 0) == TaskStatus.WAITING
    assert scissors.cuts == 1
    after = reread(task)
    assert (after.attempt, after.last_error) == (1, "ConnectionError: the printer is on fire")
    assert task.attempts.get().outcome == "failed"


@pytest.mark.parametrize("place", LEDGER_PLACES)
def test_a_connection_that_is_cut_again_and_again_leaves_it_to_recovery(
    notes, cut, reread, lease_runs_out, place
):
    scissors, worker = cut(place, times=1_000)
    task = enqueue("NOTE")
    with pytest.raises(OperationalError):  # Celery tells the queue that this message failed
        worker.do(run_job, task.pk, 0)
    assert scissors.cuts == 10  # five for the finish, five for its failure
    assert reread(task).status == TaskStatus.RUNNING
    assert notes(task) == 0
    scissors.left = 0
    lease_runs_out()
    assert dispatch_once(wait_seconds=10).recovered == 1
    assert worker.do(run_job, task.pk, 0) == TaskStatus.COMPLETED
    assert notes(task) == 1
    outcomes = list(task.attempts.values_list("outcome", flat=True))
    assert outcomes == ["lease_expired", "completed"]


@pytest.mark.parametrize("place", EFFECT_PLACES)
def test_a_connection_that_is_cut_in_every_effect_puts_the_task_off(
    notes, cut, reread, make_due, place
):
    scissors, worker = cut(place, times=1_000)
    task = enqueue("NOTE")
    assert worker.do(run_job, task.pk, 0) == TaskStatus.WAITING
    assert scissors.cuts == 5
    after = reread(task)
    assert "OperationalError" in after.last_error
    assert (after.attempt, after.max_attempts) == (1, task.max_attempts + 1)  # nobody's failure
    assert notes(task) == 0
    scissors.left = 0
    make_due()
    assert worker.do(run_job, task.pk, 0) == TaskStatus.COMPLETED
    assert notes(task) == 1


def test_a_connection_that_was_cut_while_the_handler_worked_is_replaced(
    notes, actor, reread, terminate
):
    worker = actor("worker")
    lease = worker.do(Lease.claim, enqueue("NOTE").pk, 0)
    terminate(worker.pid)
    worker.do(lease.complete, lambda: write_note(lease.task))
    assert reread(lease.task).status == TaskStatus.COMPLETED
    assert notes(lease.task) == 1


def test_a_finish_that_comes_back_too_late_is_fenced_out(
    notes, cut, reread, lease_runs_out, monkeypatch
):
    """While the worker is looking for a new connection its lease runs out, and another runs it."""
    scissors, worker = cut("just before the commit")
    task = enqueue("NOTE")
    others = []

    def meanwhile(seconds):
        lease_runs_out()
        assert dispatch_once(wait_seconds=10).recovered == 1
        others.append(run_job(task.pk, 0))

    monkeypatch.setattr("tasks.transactions.sleep", meanwhile)
    assert worker.do(run_job, task.pk, 0) is None
    assert scissors.cuts == 1
    assert others == [TaskStatus.COMPLETED]
    after = reread(task)
    assert (after.status, after.attempt) == (TaskStatus.COMPLETED, 2)
    assert notes(task) == 1
    outcomes = list(task.attempts.values_list("outcome", flat=True))
    assert outcomes == ["lease_expired", "completed"]


# --- A real worker --------------------------------------------------------------------------------


@pytest.mark.processes
def test_a_worker_whose_sessions_all_end_while_it_works_finishes_its_work(
    processes, held, notes, wait_until, reread, terminate
):
    """Its handler's connection and those of its renewals, time after time."""
    worker = processes.worker(include="tests.faults.kinds", TEAMDESK_RENEWAL_SECONDS="0.1")
    tasks = [held.enqueue() for _ in range(2)]
    dispatch_once()
    wait_until(lambda: all(held.starts(task) for task in tasks))
    for _ in range(5):
        before = {task.pk: reread(task).updated_at for task in tasks}
        ended = _sessions_of_others()
        for pid in ended:
            terminate(pid)
        wait_until(
            lambda: all(reread(task).updated_at > before[task.pk] for task in tasks),  # noqa: B023
            "both leases are renewed again",
        )
    for task in tasks:
        held.let_go(task)
    for task in tasks:
        wait_until(lambda: reread(task).status == TaskStatus.COMPLETED)  # noqa: B023
        assert task.attempts.get().outcome == "completed"
        assert notes(task) == 1
    assert worker.is_running()


def _sessions_of_others() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return [pid for (pid,) in cursor.fetchall()]
