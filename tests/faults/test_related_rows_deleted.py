"""The ticket, the team or the owner of a task goes while it waits, or while it runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection

from exports import jobs
from exports.models import Export, ExportChunk
from tasks import registry
from tasks.models import TaskStatus
from tasks.worker import run_job
from tickets.models import Notification, Team, Ticket, User

on_connections_of_its_own = pytest.mark.django_db(transaction=True)  # as an export's snapshot is

COMPLETED, FAILED = TaskStatus.COMPLETED, TaskStatus.FAILED


@pytest.fixture
def ticket(alice, bob, support):
    """alice's, assigned to bob, overdue."""
    past = datetime.now(UTC) - timedelta(minutes=1)
    return Ticket.objects.open(by=alice, team=support, subject="Lift", assignee=bob, due_at=past)


@pytest.fixture
def reminder(ticket):
    return ticket.background_tasks.get(kind="REMINDER")


@pytest.fixture
def export(ticket, alice):
    """Asked for by alice, with the overdue ticket in it."""
    return Export.objects.request(by=alice, filters={})


GOES = {
    "ticket": lambda: Ticket.objects.all().delete(),
    "team": lambda: (Ticket.objects.all().delete(), Team.objects.all().delete()),
    "owner": lambda: User.objects.filter(username="alice").delete(),
    "owner's account": lambda: User.objects.filter(username="alice").update(is_active=False),
}
WHEN = ["while it waits", "before the handler reads", "between handler and effect"]


@pytest.fixture
def goes(monkeypatch):
    """``goes(kind, what, when)``: makes it happen then."""

    def arrange(kind, what, when):
        if when == "while it waits":
            GOES[what]()
            return
        original = registry.kind(kind)

        def handler(task, lease):
            if task.attempt == 1 and when == "before the handler reads":
                GOES[what]()
            effect = original.handler(task, lease)
            if task.attempt == 1 and when == "between handler and effect":
                GOES[what]()
            return effect

        monkeypatch.setitem(registry._kinds, kind, replace(original, handler=handler))

    return arrange


@pytest.fixture
def to_its_end(make_due, reread):
    """``to_its_end(task)``: attempt after attempt, as long as there are any. Returns the row."""

    def run(task):
        while (status := run_job(task.pk, 0)) == TaskStatus.WAITING:
            make_due()
        assert status is not None, "it was refused"
        assert run_job(task.pk, 0) is None, "a second message finds nothing to do"
        return reread(task)

    return run


def told(kind):
    people = Notification.objects.filter(kind=kind).values_list("user__username", flat=True)
    return sorted(people)


@pytest.mark.django_db
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize(
    ("what", "are_told"),
    [("ticket", []), ("team", []), ("owner", ["bob"]), ("owner's account", ["bob"])],
)
def test_a_reminder_tells_who_is_left_and_completes(
    reminder, goes, to_its_end, what, when, are_told
):
    goes("REMINDER", what, when)
    after = to_its_end(reminder)
    assert (after.status, after.attempt) == (COMPLETED, 1)
    assert told("reminder") == are_told
    assert (after.ticket_id is None) == (what in ("ticket", "team"))
    assert (after.team_id is None) == (what == "team")
    assert (after.owner_id is None) == (what == "owner")


@on_connections_of_its_own
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("what", ["ticket", "team"])
def test_an_export_holds_the_rows_of_its_snapshot(export, goes, to_its_end, what, when):
    goes("EXPORT", what, when)
    after = to_its_end(export)
    export.refresh_from_db()
    assert (after.status, after.attempt) == (COMPLETED, 1)
    assert export.rows == (1 if when == "between handler and effect" else 0)
    assert len(b"".join(export.content())) == export.size
    assert told("export_ready") == ["alice"]


@on_connections_of_its_own
@pytest.mark.parametrize("when", WHEN)
def test_an_export_whose_requester_was_deleted_leaves_the_ledger_row_alone(
    export, goes, to_its_end, when
):
    goes("EXPORT", "owner", when)
    after = to_its_end(export)
    if when == "between handler and effect":  # the work was done, only nobody is left to read it
        assert (after.status, after.last_error) == (COMPLETED, "")
    else:
        assert (after.status, after.attempt) == (FAILED, 1)
        assert "deleted" in after.last_error
    assert after.owner_id is None
    assert not Export.objects.exists()
    assert not ExportChunk.objects.exists()
    assert told("export_ready") == []


@on_connections_of_its_own
@pytest.mark.parametrize("when", WHEN)
def test_an_export_for_a_deactivated_account_is_made_for_nobody(export, goes, to_its_end, when):
    goes("EXPORT", "owner's account", when)
    after = to_its_end(export)
    if when == "between handler and effect":
        assert after.status == COMPLETED
    else:
        assert (after.status, after.attempt) == (FAILED, 1)
        assert "not active any more" in after.last_error
        assert not export.chunks.exists()
    assert told("export_ready") == []
    assert after.owner_id == export.requester_id


@on_connections_of_its_own
def test_a_requester_deleted_between_two_chunks_ends_the_export(
    export, to_its_end, monkeypatch, alice, support
):
    for number in range(5):
        Ticket.objects.open(by=alice, team=support, subject=f"Lift {number}")
    monkeypatch.setattr(jobs, "CHUNK_BYTES", 10)
    original = ExportChunk.objects.store

    def store(export, *chunk):
        if export.chunks.count() == 2:
            GOES["owner"]()
        original(export, *chunk)

    monkeypatch.setattr(ExportChunk.objects, "store", store)
    after = to_its_end(export)
    assert (after.status, after.attempt) == (FAILED, 2)
    outcomes = list(after.attempts.values_list("outcome", "error"))
    assert [outcome for outcome, _ in outcomes] == ["failed", "failed"]
    assert "IntegrityError" in outcomes[0][1]
    assert "deleted" in after.last_error
    assert not ExportChunk.objects.exists()


@on_connections_of_its_own
@pytest.mark.parametrize("gives_way", ["the worker", "the person"])
def test_a_deletion_and_a_delivery_that_wait_for_each_other_both_end(
    reminder, ticket, actor, reread, monkeypatch, gives_way
):
    """The delivery holds the ticket and wants its ledger row; the deletion holds the ledger row and
    wants the ticket. PostgreSQL ends one: the worker tries again, a person is told."""
    person, worker = actor("person"), actor("worker")
    waits_long = person if gives_way == "the worker" else worker
    waits_long.do(lambda: connection.cursor().execute("SET deadlock_timeout = '30s'"))
    deletions, original = [], Ticket.remind

    def remind(self, *args):
        done = original(self, *args)
        if not deletions:
            deletions.append(person.start(ticket.delete))
            person.wait_until_blocked()
        return done

    monkeypatch.setattr(Ticket, "remind", remind)
    assert worker.do(run_job, reminder.pk, 0) == COMPLETED
    (deletion,) = deletions
    after = reread(reminder)
    assert (after.status, after.attempt) == (COMPLETED, 1)
    if gives_way == "the worker":
        deletion.result(30)
        assert after.ticket_id is None
        assert told("reminder") == []
    else:
        with pytest.raises(OperationalError, match="deadlock"):
            deletion.result(30)
        assert told("reminder") == ["alice", "bob"]
        assert after.ticket_id == ticket.pk
