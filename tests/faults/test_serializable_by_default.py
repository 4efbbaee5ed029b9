"""A database whose transactions are SERIALIZABLE unless said otherwise.

PostgreSQL then refuses (40001) what would not be as if one had come after the other. The task side
tries again; a business transaction lets its caller know. Nothing is lost, nothing is doubled.
"""

import random
import threading
from collections import Counter
from datetime import UTC, datetime

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.models.functions import Now

from tasks import recovery
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskAttempt, TaskStatus
from tasks.round_lock import RoundInProgress
from tasks.worker import run_job
from tests.faults.kinds import use
from tests.tasks.kinds import write_note
from tickets.models import Ticket, TicketEvent

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue
IN_2030, IN_2031 = datetime(2030, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)


def sql(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else None


@pytest.fixture(autouse=True)
def serializable(transactional_db):
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    sql(f"ALTER DATABASE {name} SET default_transaction_isolation TO serializable")
    connection.close()
    assert sql("SHOW transaction_isolation") == [("serializable",)]
    yield
    sql(f"ALTER DATABASE {name} RESET default_transaction_isolation")
    connection.close()


@pytest.fixture
def task(notes):
    return enqueue("NOTE")


def state_of(refusal):
    return refusal.value.__cause__.sqlstate


# The task side


def test_of_two_claims_at_once_one_wins_and_the_other_is_refused(task, actor):
    anna, otto = actor("anna"), actor("otto")
    anna.begin()
    anna.do(Lease.claim, task.pk, 0, "anna")
    second = otto.start(Lease.claim, task.pk, 0, "otto")
    otto.wait_until_blocked()
    anna.commit()
    assert second.result(30) is None
    assert task.attempts.get().worker == "anna"


def test_a_finish_whose_effect_met_another_transaction_is_tried_again(task, actor, notes):
    other, worker = actor("other"), actor("worker")
    lease = Lease.claim(task.pk, 0)
    seen = []

    def effect():
        seen.append(notes(task))  # in the snapshot of this try
        if len(seen) == 1:
            other.do(lambda: write_note(lease.task))  # what it has read is not true any more
            other.do(lambda: BackgroundTask.objects.filter(pk=task.pk).update(updated_at=Now()))
        sql("DELETE FROM test_notes WHERE task = %s", task.pk)
        write_note(lease.task)

    worker.do(lease.complete, effect)
    assert seen == [0, 1]
    assert notes(task) == 1
    assert task.attempts.get().outcome == "completed"


@pytest.mark.parametrize("verb", ["renew", "progress"])
def test_a_sign_of_life_that_met_another_is_given_again(task, actor, verb):
    lease = Lease.claim(task.pk, 0)
    other, worker = actor("other"), actor("worker")
    other.begin()
    other.do(lambda: BackgroundTask.objects.filter(pk=task.pk).update(last_error="noted"))
    sign = worker.start(lease.renew) if verb == "renew" else worker.start(lease.progress, 1, 2)
    worker.wait_until_blocked()
    other.commit()
    assert sign.result(30) is None


def test_a_renewal_that_met_a_recovery_is_refused_and_not_an_error(task, actor, time_passes):
    lease = Lease.claim(task.pk, 0)
    time_passes(121)
    dispatcher, worker = actor("dispatcher"), actor("worker")
    dispatcher.begin()
    task = BackgroundTask.objects.get()
    recovered = dispatcher.do(recovery.recover_together, [task])
    assert recovered == {task.pk: TaskStatus.WAITING}
    renewal = worker.start(lease.renew)
    worker.wait_until_blocked()
    dispatcher.commit()
    with pytest.raises(LeaseLost):
        renewal.result(30)


def test_of_two_finishes_in_a_deadlock_both_come_through(notes, actor):
    tasks = [enqueue("NOTE") for _ in range(2)]
    leases = [Lease.claim(task.pk, 0) for task in tasks]
    doors = [enqueue("NOTE") for _ in range(2)]  # rows that both effects lock, in opposite order
    both_inside = threading.Barrier(2)
    tries = Counter()

    def effect_of(number):
        def effect():
            tries[number] += 1
            lock = lambda door: sql(  # noqa: E731
                "UPDATE tasks_backgroundtask SET progress_done = 1 WHERE id = %s", door.pk
            )
            lock(doors[number])
            if tries[number] == 1:
                both_inside.wait(30)
            lock(doors[1 - number])
            write_note(leases[number].task)

        return effect

    workers = [actor("anna"), actor("otto")]
    finishes = [w.start(leases[n].complete, effect_of(n)) for n, w in enumerate(workers)]
    for finish in finishes:
        finish.result(60)
    assert sum(tries.values()) >= 3
    assert notes() == [(task.pk, 0) for task in tasks]


def test_a_handler_that_met_another_itself_is_charged_no_attempt(notes, actor, monkeypatch):
    other = actor("other")
    task = enqueue("NOTE")

    def handler(task, lease):
        with transaction.atomic():
            notes(task)
            row = BackgroundTask.objects.filter(pk=task.pk)
            other.do(lambda: row.update(progress_total=7))
            row.update(progress_total=8)

    use(monkeypatch, "NOTE", handler, ladder=(60, 300))
    assert run_job(task.pk, 0) == TaskStatus.WAITING
    task.refresh_from_db()
    assert (task.attempt, task.max_attempts) == (1, 4)
    assert task.attempts.get().outcome == "released"


# Business transactions


def test_an_edit_that_met_another_tells_its_caller_and_leaves_nothing(
    notes, actor, alice, bob, support
):
    ticket = Ticket.objects.open(by=alice, team=support, subject="Lift")
    before = TicketEvent.objects.count()
    anna, otto = actor("anna"), actor("otto")
    anna.begin()
    anna.do(lambda: Ticket.objects.get(pk=ticket.pk).set_due(IN_2030, by=alice))
    second = otto.start(lambda: Ticket.objects.get(pk=ticket.pk).set_due(IN_2031, by=bob))
    otto.wait_until_blocked()
    anna.commit()
    with pytest.raises(OperationalError) as refusal:
        second.result(30)
    assert state_of(refusal) == "40001"
    ticket.refresh_from_db()
    assert ticket.due_at == IN_2030
    assert BackgroundTask.objects.waiting().get(kind="REMINDER").run_at == IN_2030
    assert TicketEvent.objects.count() == before + 1


def test_an_enqueue_that_met_its_keys_holder_tells_its_caller(notes, actor):
    anna, otto = actor("anna"), actor("otto")
    anna.begin()
    anna.do(enqueue, "NOTE", dedup_key="report")
    second = otto.start(enqueue, "NOTE", dedup_key="report")
    otto.wait_until_blocked()
    anna.commit()
    with pytest.raises(OperationalError) as refusal:
        second.result(30)
    assert state_of(refusal) == "40001"
    assert BackgroundTask.objects.count() == 1
    assert otto.do(enqueue, "NOTE", dedup_key="report") == BackgroundTask.objects.get()


# All at once


def test_threads_of_every_kind_lose_and_double_nothing(notes, monkeypatch, wait_until):
    """Effects that read what the others write, so that PostgreSQL has reasons to refuse."""

    def effect_after_a_look(task, lease):
        def effect():
            notes(task)
            sql("SELECT count(*) FROM test_notes")
            write_note(task)

        return effect

    use(monkeypatch, "NOTE", effect_after_a_look, ladder=(60, 300))
    accepted, surfaced, errors = [], [], []
    ended = threading.Event()
    wanted = 60

    def accept():
        while len(accepted) < wanted:
            try:
                with transaction.atomic():
                    sql("SELECT count(*) FROM tasks_backgroundtask")
                    key = f"key {random.randrange(10)}" if random.random() < 0.3 else None
                    task = enqueue("NOTE", dedup_key=key)
                accepted.append(task.pk)
            except OperationalError as refusal:
                surfaced.append(refusal.__cause__.sqlstate)

    def work():
        while not ended.is_set():
            waiting = BackgroundTask.objects.waiting().filter(run_at__lte=Now())
            for pk in list(waiting.values_list("pk", flat=True)[:10]):
                run_job(pk, 0)

    def dispatch():
        while not ended.is_set():
            try:
                dispatch_once()
            except RoundInProgress:
                pass
            except RoundFault as fault:  # a scan that was refused: the next round tries again
                if "could not serialize" not in str(fault):
                    errors.append(fault)

    def running(target):
        def run():
            try:
                target()
            except Exception as error:
                errors.append(error)
            finally:
                connections.close_all()

        thread = threading.Thread(target=run, name=target.__name__, daemon=True)
        thread.start()
        return thread

    threads = [running(work) for _ in range(3)] + [running(dispatch) for _ in range(2)]
    callers = [running(accept) for _ in range(3)]
    for caller in callers:
        caller.join(60)
    try:
        live = BackgroundTask.objects.live()
        wait_until(lambda: not live.exists() or errors, "all are done", 60)
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
    assert errors == []
    assert set(surfaced) <= {"40001", "40P01"}
    assert notes() == sorted((pk, 0) for pk in set(accepted))
    assert not TaskAttempt.objects.filter(finished_at=None).exists()
    assert not BackgroundTask.objects.exclude(status=TaskStatus.COMPLETED).exists()
