"""A file has what its person may see on the pages, and nothing else: by role and teams, and when
rights change between request, run and download."""

import pytest

from exports.models import Export, RowKind
from tasks.models import TaskStatus
from tests.exports.conftest import content_of, records_of, reloaded, rows_offered
from tickets.models import Comment, Role, Team, Ticket, TicketEvent, User

pytestmark = pytest.mark.django_db(transaction=True)
LAST = {RowKind.TICKETS: "subject", RowKind.CONVERSATION: "text", RowKind.HISTORY: "after"}
of_each_kind = pytest.mark.parametrize("row_kind", RowKind.values)


@pytest.fixture
def third(db):
    return Team.objects.create(name="Third", slug="third")


@pytest.fixture
def talked_about(root):
    """``talked_about(team)``: its ticket, with a reply and a note, and a change."""

    def make(team):
        ticket = Ticket.objects.open(by=root, team=team, subject=f"Subject of {team}")
        ticket.comment(by=root, body=f"Reply of {team}")
        ticket.comment(by=root, body=f"Note of {team}", is_public=False)
        ticket.set_status("pending", by=root)
        return ticket

    return make


@pytest.fixture
def tickets(talked_about, support, billing, third):
    return {team: talked_about(team) for team in (support, billing, third)}


def asked(person, row_kind, **filters):
    columns = ["id", "team", LAST[row_kind]]
    return Export.objects.request(by=person, filters=filters, columns=columns, row_kind=row_kind)


def download(client, export):
    return client.get(f"/exports/{export.pk}/download/")


@of_each_kind
@pytest.mark.parametrize("number_of_teams", [0, 1, 2])
@pytest.mark.parametrize("role", [*Role.values, "staff", "superuser"])
def test_each_role_gets_its_teams(
    client, run, tickets, support, billing, third, role, number_of_teams, row_kind
):
    person = User.objects.create_user(
        "person", is_staff=role in ("staff", "superuser"), is_superuser=role == "superuser"
    )
    own = [support, billing][:number_of_teams]
    for team in own:
        team.memberships.create(user=person, role=role if role in Role.values else Role.VIEWER)
    sees = [support, billing, third] if role == "superuser" else own

    client.force_login(person)
    on_screen = client.get("/tickets/").context["page"].object_list
    assert {ticket.team for ticket in on_screen} == set(sees)
    export = run(asked(person, row_kind, sort="id"))
    records = records_of(export)
    assert {int(record["id"]) for record in records} == {ticket.pk for ticket in on_screen}
    assert {record["team"] for record in records} == {team.name for team in sees}
    assert set(export.team_ids) == {team.pk for team in sees}
    content = content_of(export).decode()
    for team in (support, billing, third):
        assert (f"of {team}" in content) == (team in sees)
    assert download(client, export).status_code == 200


@of_each_kind
def test_who_is_deactivated_gets_no_file_as_no_page(client, run, alice, tickets, row_kind):
    export = asked(alice, row_kind)
    client.force_login(alice)
    alice.is_active = False
    alice.save()
    assert client.get("/tickets/").status_code == 302
    assert rows_offered(alice, {}, row_kind) == 0
    export = run(export)
    assert export.task.status == TaskStatus.FAILED
    assert "not active any more" in export.error
    assert not export.chunks.exists()


@pytest.mark.parametrize("name", ["alice", "bob", "vera", "root"])
def test_the_timeline_of_the_page_is_what_the_files_tell(request, client, run, tickets, name):
    """The page shows internal notes to every reader of a ticket; a comment that was taken away it
    does not show any more, and neither does a file."""
    person = request.getfixturevalue(name)
    ticket = next(iter(tickets.values()))
    Comment.objects.create(ticket=ticket, author_text="Somebody", body="Said elsewhere")
    gone = ticket.comment(by=ticket.creator, body="My password is 1234")
    Comment.objects.filter(pk=gone.pk).delete()
    client.force_login(person)
    answer = client.get(f"/tickets/{ticket.pk}/")
    timeline = answer.context["timeline"]
    comments = [entry["comment"] for entry in timeline if "comment" in entry]
    events = [event for entry in timeline for event in entry.get("events", ())]
    assert {comment.is_public for comment in comments} == {True, False}

    keys = ["id", "author", "visibility", "text"]
    conversation = Export.objects.request(
        person, {"q": f"#{ticket.pk}"}, keys, row_kind=RowKind.CONVERSATION
    )
    assert [list(record.values())[1:] for record in records_of(run(conversation))] == [
        [
            comment.author.display_name if comment.author else comment.author_text,
            "Reply" if comment.is_public else "Internal note",
            comment.body,
        ]
        for comment in comments
    ]

    keys = ["id", "what", "field", "before", "after"]
    history = run(
        Export.objects.request(person, {"q": f"#{ticket.pk}"}, keys, row_kind=RowKind.HISTORY)
    )
    records = records_of(history)
    told = [record for record in records if record["what"] not in ("Reply", "Internal note")]
    assert [(record["field"], record["before"], record["after"]) for record in told] == [
        (event.field_display, event.old_display, event.new_display) for event in events
    ]
    # A comment is told in both, and of one that is gone only that it was.
    own = [comment.body for comment in comments if comment.author]
    said = [record["after"] for record in records if record not in told]
    assert said == [*own, ""]
    for export in (conversation, history):
        assert b"1234" not in content_of(reloaded(export))
    assert "1234" not in answer.content.decode()


@of_each_kind
def test_what_is_lost_between_request_and_run_is_not_in_the_file(
    run, tickets, support, billing, row_kind
):
    person = User.objects.create_user("person")
    for team in (support, billing):
        team.memberships.create(user=person, role="agent")
    export = asked(person, row_kind)
    billing.memberships.filter(user=person).delete()
    export = run(export)
    assert b"Billing" not in content_of(export)
    assert {record["team"] for record in records_of(export)} == {"Support"}
    assert export.team_ids == [support.pk]


@of_each_kind
def test_a_superuser_who_is_one_no_longer_gets_only_the_own_teams(
    run, tickets, root, billing, row_kind
):
    export = asked(root, row_kind)
    billing.memberships.create(user=root, role="viewer")
    root.is_superuser = False
    root.save()
    assert {record["team"] for record in records_of(run(export))} == {"Billing"}


@of_each_kind
def test_what_is_lost_between_run_and_download_cannot_be_downloaded(
    client, run, tickets, support, billing, row_kind
):
    """One of two teams is enough: the file has both."""
    person = User.objects.create_user("person")
    for team in (support, billing):
        team.memberships.create(user=person, role="lead")
    export = run(asked(person, row_kind))
    only_support = run(asked(person, row_kind, team=[str(support.pk)]))
    client.force_login(person)
    assert download(client, export).status_code == 200
    billing.memberships.filter(user=person).delete()
    assert download(client, export).status_code == 404
    assert download(client, only_support).status_code == 200
    billing.memberships.create(user=person, role="viewer")
    assert download(client, export).status_code == 200


@of_each_kind
def test_a_file_of_all_is_gone_with_the_superusers_rights(client, run, tickets, root, row_kind):
    export = run(asked(root, row_kind))
    client.force_login(root)
    root.is_superuser = False
    root.save()
    assert download(client, export).status_code == 404


@of_each_kind
def test_a_ticket_that_moves_before_the_run_takes_all_of_it_along(
    run, tickets, root, support, billing, alice, row_kind
):
    """As on the page: who sees a ticket sees what was said and done before it came."""
    moved = tickets[billing]
    moved.edit(by=root, changes={"team": support})
    left = tickets[support]
    left.edit(by=root, changes={"team": billing})
    export = run(asked(alice, row_kind, sort="id"))
    assert {record["id"] for record in records_of(export)} == {str(moved.pk)}
    rows = {
        RowKind.TICKETS: 1,
        RowKind.CONVERSATION: moved.comments.count(),
        RowKind.HISTORY: TicketEvent.objects.filter(ticket=moved).count(),
    }
    assert export.rows == rows[row_kind] > 0
