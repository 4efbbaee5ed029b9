"""Each kind of row: the file is one moment of the database, whatever others commit meanwhile."""

import pytest

from exports.models import Export, RowKind
from exports.snapshot import Snapshot
from tasks.models import TaskStatus
from tests.exports.conftest import content_of, records_of, reloaded, rows_offered
from tickets.models import Comment, Ticket, TicketEvent

pytestmark = pytest.mark.django_db(transaction=True)
COLUMNS = {
    RowKind.TICKETS: ["id", "subject", "status"],
    RowKind.CONVERSATION: ["id", "subject", "status", "author", "text"],
    RowKind.HISTORY: ["id", "subject", "what", "field", "before", "after"],
}
of_each_kind = pytest.mark.parametrize("row_kind", RowKind.values)


@pytest.fixture
def tickets(alice, support):
    """Five, each with two comments and two changes."""
    made = []
    for number in range(5):
        ticket = Ticket.objects.open(by=alice, team=support, subject=f"Ticket {number}")
        ticket.comment(by=alice, body=f"First of {number}")
        ticket.comment(by=alice, body=f"Second of {number}", is_public=False)
        ticket.set_priority("urgent", by=alice)
        made.append(ticket)
    return made


def asked(person, row_kind, **more):
    columns = COLUMNS[row_kind]
    return Export.objects.request(person, {"sort": "id"}, columns, row_kind=row_kind, **more)


def change_everything(tickets, bob, support):
    """Of every table that a file reads: rows come, go and change, rights too."""
    late = Ticket.objects.open(by=bob, team=support, subject="Too late")
    late.comment(by=bob, body="Too late")
    tickets[0].comment(by=bob, body="Too late", then="resolved")
    tickets[1].edit(by=bob, changes={"subject": "Too late", "status": "closed"})
    Comment.objects.filter(ticket=tickets[2]).delete()
    Comment.objects.filter(ticket=tickets[3]).update(body="Too late", is_public=True)
    TicketEvent.objects.filter(ticket=tickets[3]).update(new_text="Too late")
    tickets[4].delete()
    type(bob).objects.update(first_name="Too", last_name="late")
    support.name = "Too late"
    support.save()
    support.memberships.all().delete()


@of_each_kind
def test_what_another_commits_after_the_count_is_not_in_the_file(
    alice, bob, tickets, support, run, actor, after_the_count, row_kind
):
    quiet = run(asked(alice, row_kind))
    expected = content_of(quiet)
    assert quiet.rows == {"tickets": 5, "conversation": 10, "history": 20}[row_kind]

    export = asked(alice, row_kind)
    other = actor("other")
    after_the_count(lambda: other.do(change_everything, tickets, bob, support))
    export = run(export)
    assert (export.task.status, export.rows) == (TaskStatus.COMPLETED, quiet.rows)
    assert content_of(export) == expected
    assert export.team_ids == [support.pk]
    assert support.memberships.count() == 0  # it did happen


@of_each_kind
def test_what_is_written_but_not_committed_at_the_count_is_not_in_the_file(
    alice, bob, tickets, run, actor, after_the_count, row_kind
):
    expected = content_of(run(asked(alice, row_kind)))
    other = actor("other")
    other.begin()
    other.do(tickets[0].comment, by=bob, body="Under way", then="resolved")
    export = asked(alice, row_kind)
    after_the_count(other.commit)
    export = run(export)
    assert content_of(export) == expected
    assert "Under way" in Comment.objects.values_list("body", flat=True)


@of_each_kind
def test_what_is_committed_before_the_count_is_all_in_the_file(
    alice, bob, tickets, run, actor, row_kind
):
    export = asked(alice, row_kind)
    other = actor("other")
    other.begin()
    other.do(tickets[0].comment, by=bob, body="In time", then="resolved")
    other.commit()
    export = run(export)
    rows = {"tickets": 5, "conversation": 11, "history": 22}[row_kind]
    assert (export.rows, len(records_of(export))) == (rows, rows)
    content = content_of(export).decode()
    assert ("resolved" in content) and ("In time" in content) == (row_kind != RowKind.TICKETS)


@of_each_kind
def test_the_rows_announced_and_those_written_are_both_kept(alice, bob, tickets, run, row_kind):
    announced = rows_offered(alice, {}, row_kind)
    export = asked(alice, row_kind, announced_rows=announced)
    tickets[0].comment(by=bob, body="Meanwhile")
    Ticket.objects.open(by=bob, team=tickets[0].team, subject="Meanwhile")
    export = run(export)
    before, after = {"tickets": (5, 6), "conversation": (10, 12), "history": (20, 22)}[row_kind]
    assert (export.announced_rows, export.rows) == (before, after)
    assert len(records_of(export)) == after


@of_each_kind
def test_a_file_with_other_rows_than_its_snapshot_is_not_kept(
    alice, tickets, run, monkeypatch, row_kind
):
    export = asked(alice, row_kind)
    rows = rows_offered(alice, {}, row_kind)
    count_by = Snapshot.count_by

    def one_more(self, *args):
        return {team: number + 1 for team, number in count_by(self, *args).items()}

    monkeypatch.setattr(Snapshot, "count_by", one_more)
    export = reloaded(run(export))
    assert export.task.status == TaskStatus.WAITING
    assert f"{rows} rows were written where the snapshot has {rows + 1}" in export.error
    assert (export.rows, export.execution_id) == (None, None)
