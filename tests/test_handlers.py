"""The rules of a handler, held for every registered kind: a new kind needs a scenario here.

1. It may run twice. 2. It ends by itself when its world stalls. 3. Its failures are not swallowed.
The same holds when tasks of a kind run as a group, whether or not its policy lets them today.
"""

from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta

import pytest
from django.core import mail
from django.db import connection
from django.db.backends.signals import connection_created
from django.db.models.functions import Now

from exports.models import Export, ScheduledExport
from tasks import batch, completion, registry, transactions
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.transactions import set_session_limits
from tasks.worker import run_job, run_jobs
from tickets.models import BulkEdit, Notification, Ticket, TicketEvent

pytestmark = pytest.mark.django_db(transaction=True)


# A scenario makes ``task``, counts its ``effects()`` and says how many are ``expected``, and in
# which table the last of them is written: there it is made to fail. ``world`` is the table that it
# cannot do without, if that is not the tickets'.


class Reminder:
    """A ticket of alice's, assigned to bob, whose due date has come."""

    def __init__(self, alice, bob, support):
        past = datetime.now(UTC) - timedelta(minutes=1)
        ticket = Ticket.objects.open(
            by=alice, team=support, subject="Lift", assignee=bob, due_at=past
        )
        self.task = ticket.background_tasks.get(kind="REMINDER")

    def effects(self) -> int:
        return Notification.objects.filter(kind="reminder").count()

    expected = 2  # alice and bob
    effect_table = "tickets_notification"


class ExportOfTickets:
    """A file of alice's two tickets."""

    def __init__(self, alice, bob, support):
        for number in range(2):
            Ticket.objects.open(by=alice, team=support, subject=f"Lift {number}")
        self.task = Export.objects.request(by=alice, filters={}).task

    def effects(self) -> int:
        return Notification.objects.filter(kind="export_ready").count()

    expected = 1
    effect_table = "tickets_notification"


class ScheduledExportOfTickets:
    """alice's time for a file of her tickets has come."""

    def __init__(self, alice, bob, support):
        scheduled = ScheduledExport.objects.schedule(
            alice, name="Daily", rhythm="daily", time_of_day=time(8)
        )
        self.task = BackgroundTask.objects.filter(kind="SCHEDULED_EXPORT").latest("pk")
        BackgroundTask.objects.filter(pk=self.task.pk).update(run_at=Now())
        ScheduledExport.objects.filter(pk=scheduled.pk).update(next_run_at=Now())

    def effects(self) -> int:
        return Export.objects.count()

    expected = 1
    effect_table = "exports_scheduledexport"
    world = "exports_scheduledexport"


class Mail:
    """bob is told by mail that a ticket is his."""

    def __init__(self, alice, bob, support):
        Ticket.objects.open(by=alice, team=support, subject="Lift", assignee=bob)
        self.task = BackgroundTask.objects.get(kind="MAIL")

    def effects(self) -> int:
        return len(mail.outbox)

    expected = 1
    effect_table = "tickets_maildelivery"
    # A mail that left is no row: it is not taken back with the transaction. What holds instead:
    # the next execution finds it recorded as sent.
    leaves_in_the_handler = True


class BulkEditOfTickets:
    """alice makes two tickets urgent."""

    def __init__(self, alice, bob, support):
        tickets = [Ticket.objects.open(by=alice, team=support, subject="Lift") for _ in range(2)]
        seen = {ticket.pk: ticket.version for ticket in tickets}
        self.task = BulkEdit.objects.request(alice, seen, {"priority": "urgent"}).task

    def effects(self) -> int:
        return TicketEvent.objects.filter(field="priority").count()

    expected = 2
    effect_table = "tickets_bulkticket"
    # Each ticket is committed alone, with the row that says so: the next execution finds that.
    leaves_in_the_handler = True


SCENARIOS = {
    "BULK": BulkEditOfTickets,
    "REMINDER": Reminder,
    "EXPORT": ExportOfTickets,
    "SCHEDULED_EXPORT": ScheduledExportOfTickets,
    "MAIL": Mail,
}

# The ledger's own kinds change nothing but the ledger, and chores commit as they go, what they find
# again if they are repeated: they return no effect.
WITHOUT_EFFECT = {"CANARY_SHORT", "CANARY_LONG", "PRUNE", "STRANDED_SCHEDULES"}


@pytest.fixture(params=sorted(SCENARIOS))
def scenario(request, alice, bob, support):
    return SCENARIOS[request.param](alice, bob, support)


@pytest.fixture
def neighbour(scenario, alice, bob, support):
    """Another task of the same kind."""
    if getattr(scenario, "leaves_in_the_handler", False):
        assert registry.kind(scenario.task.kind).batch == 1
        pytest.skip("What it does outside must not wait for neighbours: it has no batch")
    return type(scenario)(alice, bob, support)


def jobs(*scenarios):
    return [(scenario.task.pk, 0) for scenario in scenarios]


def status(scenario):
    return BackgroundTask.objects.get(pk=scenario.task.pk).status


def test_every_kind_has_a_scenario():
    ours = {
        name
        for name, kind in registry.kinds().items()
        if not kind.handler.__module__.startswith("tests.")
    }
    assert ours == set(SCENARIOS) | WITHOUT_EFFECT


@pytest.mark.parametrize("kind", sorted(WITHOUT_EFFECT))
def test_a_kind_without_effect_may_run_twice(kind):
    task = BackgroundTask.objects.enqueue(kind)
    lease = Lease.claim(task.pk, 0)
    assert [lease.kind.handler(lease.task, lease) for _ in range(2)] == [None, None]
    lease.complete()
    task.refresh_from_db()
    assert task.status == TaskStatus.COMPLETED


def test_it_does_its_work(scenario):
    assert run_job(scenario.task.pk, 0) == TaskStatus.COMPLETED
    assert scenario.effects() == scenario.expected


def test_a_second_message_finds_nothing_to_do(scenario):
    run_job(scenario.task.pk, 0)
    assert run_job(scenario.task.pk, 0) is None
    assert scenario.effects() == scenario.expected


def test_it_may_run_again_although_it_was_done(scenario):
    """As after a restore of yesterday's ledger beside today's data: the target's state counts."""
    run_job(scenario.task.pk, 0)
    BackgroundTask.objects.filter(pk=scenario.task.pk).update(
        status=TaskStatus.WAITING, finished_at=None, expires_at=None
    )
    assert run_job(scenario.task.pk, 0) == TaskStatus.COMPLETED
    assert scenario.effects() == scenario.expected


def test_a_handler_that_lost_its_lease_leaves_no_effect(scenario):
    lease = Lease.claim(scenario.task.pk, 0)
    effect = lease.kind.handler(lease.task, lease)
    BackgroundTask.objects.filter(pk=scenario.task.pk).update(
        status=TaskStatus.WAITING, execution_id=None, run_at=Now()
    )
    with pytest.raises(LeaseLost):
        lease.complete(effect)
    if not getattr(scenario, "leaves_in_the_handler", False):
        assert scenario.effects() == 0
    assert run_job(scenario.task.pk, 0) == TaskStatus.COMPLETED
    assert scenario.effects() == scenario.expected


def test_it_ends_by_itself_when_its_world_stalls(scenario, actor, monkeypatch):
    """Its world is locked for good; the sessions' limits of a worker end the wait."""
    monkeypatch.setitem(transactions._LIMITS, "lock_timeout", "200ms")
    worker, locker = actor("worker"), actor("locker")
    locker.begin()
    locker.do(_lock, getattr(scenario, "world", "tickets_ticket"))
    worker.do(lambda: set_session_limits(connection=connection))
    connection_created.connect(set_session_limits)
    try:
        assert worker.start(run_job, scenario.task.pk, 0).result(60) == TaskStatus.WAITING
    finally:
        connection_created.disconnect(set_session_limits)
        locker.commit()
    assert scenario.effects() == 0
    assert "lock timeout" in BackgroundTask.objects.get(pk=scenario.task.pk).last_error


def _lock(table):
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")


@contextmanager
def refused(scenario):
    """PostgreSQL refuses the effect."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the bell is broken'; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON {scenario.effect_table} "
            "EXECUTE FUNCTION refuse()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")


def test_its_failure_is_not_swallowed(scenario):
    with refused(scenario):
        assert run_job(scenario.task.pk, 0) == TaskStatus.WAITING
    assert scenario.effects() == 0
    assert "the bell is broken" in BackgroundTask.objects.get(pk=scenario.task.pk).last_error


def test_it_does_its_work_beside_a_neighbour(scenario, neighbour, groups):
    assert run_jobs(jobs(scenario, neighbour)) == [TaskStatus.COMPLETED] * 2
    assert groups == ["together"]
    assert scenario.effects() == 2 * scenario.expected


def test_its_effect_may_run_again_after_its_group_was_rolled_back(scenario, neighbour, groups):
    """The neighbour is cancelled when all is written: nothing of the group stays."""
    groups.before_commit = lambda: BackgroundTask.objects.filter(pk=neighbour.task.pk).cancel()
    assert run_jobs(jobs(scenario, neighbour)) == [TaskStatus.COMPLETED, None]
    assert groups == ["alone"]
    assert scenario.effects() == scenario.expected


def test_failures_in_a_group_are_each_tasks_own(scenario, neighbour, groups):
    with refused(scenario):
        assert run_jobs(jobs(scenario, neighbour)) == [TaskStatus.WAITING] * 2
    assert groups == ["alone"]
    assert scenario.effects() == 0
    for each in (scenario, neighbour):
        task = BackgroundTask.objects.get(pk=each.task.pk)
        assert "the bell is broken" in task.last_error
        assert task.attempts.get().outcome == "failed"


class Groups(list):
    """How each group ended; what happens when its effects are written and not yet committed."""

    before_commit = staticmethod(lambda: None)


@pytest.fixture
def groups(monkeypatch, actor):
    # A slow machine must not part what this is about.
    monkeypatch.setattr(completion, "_GROUP_SECONDS", 600)
    monkeypatch.setattr(completion, "_GROUP_LIMITS", "SELECT 1")
    monkeypatch.setattr(batch, "_GROUP_AFTER_SECONDS", 600)
    seen, other = Groups(), actor("other")
    complete, record = batch.complete_together, completion.record_completed

    def complete_together(finished):
        try:
            complete(finished)
        except Exception:
            seen.append("alone")
            raise
        seen.append("together")

    def record_completed(leases):
        if len(leases) > 1:
            other.do(seen.before_commit)
        return record(leases)

    monkeypatch.setattr(batch, "complete_together", complete_together)
    monkeypatch.setattr(completion, "record_completed", record_completed)
    return seen


def test_what_it_was_about_may_be_gone(scenario):
    """The ticket, its team and its owner were deleted while it waited."""
    Ticket.objects.all().delete()
    if not isinstance(scenario, ExportOfTickets):
        BackgroundTask.objects.filter(pk=scenario.task.pk).update(owner=None, team=None)
    assert run_job(scenario.task.pk, 0) == TaskStatus.COMPLETED
