"""Eight threads purge, finish, cancel, retry, stamp, recover, prune and edit the same few rows.

PostgreSQL counts its deadlocks itself, also those that the task side would hide by trying again.
"""

import contextlib
import random
import threading
import time
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.models import Count, F, Max

from exports.models import Export, ExportChunk
from exports.purge import purge_results
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease, LeaseLost
from tasks.models import AttemptOutcome, BackgroundTask, DedupConflict, TaskAttempt, TaskStatus
from tasks.round_lock import RoundInProgress
from tasks.worker import run_job
from tests.tasks.kinds import write_note
from tickets.models import EventKind, Ticket, TicketEvent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

SECONDS, TURNS = 60, 150  # whichever comes first, for every thread
tasks = BackgroundTask.objects


def deadlocks():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return cursor.fetchone()[0]


class Crowd:
    """Threads that each repeat one thing until all have done enough of it."""

    def __init__(self):
        self.turns, self.errors, self._threads = Counter(), [], []
        self._deadline = time.monotonic() + SECONDS

    def join_in(self, work):
        self.turns[work.__name__] = 0
        thread = threading.Thread(target=self._repeat, args=(work,), name=work.__name__)
        self._threads.append(thread)

    def go(self):
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join(SECONDS * 2)
        assert not any(thread.is_alive() for thread in self._threads), "someone waits for ever"

    def _repeat(self, work):
        try:
            while min(self.turns.values()) < TURNS and time.monotonic() < self._deadline:
                work()
                self.turns[work.__name__] += 1
        except Exception as error:
            self.errors.append((work.__name__, error))
            self._deadline = 0  # the others need not go on
        finally:
            connections.close_all()


@pytest.fixture
def crowd(settings, alice, bob, support, notes):
    """What they do. Everything is old at once: checks, leases, results."""
    settings.TEAMDESK_RECHECK_SECONDS = settings.TEAMDESK_LEASE_SECONDS = 0
    settings.TEAMDESK_EXPORT_TTL = settings.TEAMDESK_PURGE_GRACE = timedelta(0)
    tickets = [Ticket.objects.open(by=alice, team=support, subject=f"{n}") for n in range(5)]
    Export.objects.request(by=alice, filters={})
    crowd = Crowd()

    def some(*statuses, of=tasks):
        found = list(of.filter(status__in=statuses).order_by("?")[:6])
        random.shuffle(found)
        return found

    def stamp_recover_and_purge():
        with contextlib.suppress(RoundInProgress):
            dispatch_once()

    def purge():
        for task in some(*TaskStatus.values, of=tasks.filter(kind="EXPORT"))[:1]:
            ExportChunk.objects.create(
                export_id=task.pk, execution_id=uuid.uuid4(), first_byte=0, data=b"left over"
            )
        purge_results(1)

    def prune():
        tasks.filter(kind="LONG_NOTE").prune(timedelta(0), seconds=1)

    def finish():
        for task in some("WAITING"):
            run_job(task.pk, task.run)

    held = []

    def finish_late():
        """What it claimed some turns ago was recovered, cancelled or claimed again since."""
        for task in some("WAITING", of=tasks.filter(kind="NOTE"))[:3]:
            if lease := Lease.claim(task.pk, task.run, "late"):
                held.append(lease)
        while len(held) > 4:
            lease = held.pop(random.randrange(len(held)))
            with contextlib.suppress(LeaseLost):
                lease.complete(lambda lease=lease: write_note(lease.task))

    def cancel():
        chosen = some("WAITING", "RUNNING")
        if random.random() < 0.5:
            tasks.filter(pk__in=[task.pk for task in chosen]).cancel(by=bob)
        else:
            for task in chosen[:2]:
                task.cancel(by=bob)

    def retry_and_enqueue():
        for task in some("CANCELLED", "FAILED", of=tasks.exclude(kind="REMINDER"))[:3]:
            with contextlib.suppress(DedupConflict):
                task.retry(by=bob)
        with transaction.atomic():
            tasks.enqueue("NOTE", dedup_key=f"key {random.randrange(6)}")
            tasks.enqueue("LONG_NOTE")
        if tasks.live().filter(kind="EXPORT").count() < 3:
            Export.objects.request(by=alice, filters={})

    def move_due_dates():
        ticket = Ticket.objects.get(pk=random.choice(tickets).pk)
        past = datetime.now(UTC) - timedelta(seconds=random.randrange(100))
        random.choice(
            [
                lambda: ticket.set_due(past, by=alice),
                lambda: ticket.set_due(past + timedelta(days=3), by=bob),
                lambda: ticket.resolve(by=bob),
                lambda: ticket.reopen(by=alice),
                lambda: ticket.assign(random.choice([alice, bob]), by=alice),
            ]
        )()

    for work in (
        *(stamp_recover_and_purge, purge, prune, finish, finish_late),
        *(cancel, retry_and_enqueue, move_due_dates),
    ):
        crowd.join_in(work)
    return crowd


def test_there_is_no_deadlock_and_the_ledger_stays_true(crowd, notes):
    before = deadlocks()
    crowd.go()
    assert crowd.errors == []
    assert deadlocks() == before
    assert min(crowd.turns.values()) > 0, crowd.turns

    dispatch_once()  # no lease is left
    assert not tasks.filter(status=TaskStatus.RUNNING).exists()
    assert not TaskAttempt.objects.filter(finished_at=None).exists()

    # An effect for every completed attempt, and no other; one completed attempt per run at most.
    completed = TaskAttempt.objects.filter(outcome=AttemptOutcome.COMPLETED)
    pruned = {pk for pk, _ in notes()} - set(tasks.values_list("pk", flat=True))
    effects = Counter(note for note in notes() if note[0] not in pruned)
    noted = completed.filter(task__kind__in=["NOTE", "LONG_NOTE"]).values_list("task", "run")
    assert effects == Counter(noted)
    assert all(count == 1 for count in Counter(notes()).values())
    assert not completed.values("task", "run").annotate(n=Count("pk")).filter(n__gt=1).exists()

    # What each task says is what its last attempt says.
    done = tasks.filter(status=TaskStatus.COMPLETED)
    last = completed.filter(run=F("task__run"), attempt=F("task__attempt"))
    assert set(done.values_list("pk", flat=True)) == set(
        last.filter(task__status=TaskStatus.COMPLETED).values_list("task", flat=True)
    )
    assert not last.exclude(task__status=TaskStatus.COMPLETED).exists()
    counts = TaskAttempt.objects.values("task", "run", limit=F("task__max_attempts"))
    assert not counts.annotate(most=Max("attempt")).filter(most__gt=F("limit")).exists()

    # Each due date that was set has reminded once at most, and only the last one still waits.
    reminded = TicketEvent.objects.filter(kind=EventKind.REMINDED).values_list(
        "ticket", "new_value"
    )
    assert all(count == 1 for count in Counter(reminded).values())
    waiting = tasks.waiting().filter(kind="REMINDER")
    assert not waiting.exclude(reminder_revision=F("ticket__reminder_revision")).exists()
    assert not waiting.values("ticket").annotate(n=Count("pk")).filter(n__gt=1).exists()
