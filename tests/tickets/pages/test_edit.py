"""All fields on one form, merged with what others did meanwhile."""

from datetime import UTC, datetime

import pytest

from tickets.forms import TicketForm


@pytest.fixture
def form(ticket):
    """``form(person, **changes)``: what that person's browser would post now, with changes."""

    def fields(person, **changes):
        ticket.refresh_from_db()
        shown = TicketForm(user=person, ticket=ticket)
        values = {name: shown[name].value() for name in shown.fields}
        return {name: "" if value is None else value for name, value in values.items()} | changes

    return fields


def test_it_saves_what_was_changed(client, ticket, bob, form):
    client.force_login(bob)
    answer = client.post(f"/tickets/{ticket.pk}/edit/", form(bob, subject="Calm", tags="a, b"))
    ticket.refresh_from_db()
    assert (answer.status_code, answer.url) == (302, f"/tickets/{ticket.pk}/")
    assert (ticket.subject, ticket.tags) == ("Calm", ["a", "b"])
    assert {event.field for event in ticket.events.filter(kind="changed")} == {"subject", "tags"}


def test_an_untouched_form_changes_nothing(client, make_ticket, bob):
    ticket = make_ticket(
        description="one\r\ntwo", due_at=datetime(2031, 10, 26, 1, 30, 7, 999, tzinfo=UTC)
    )
    bob.time_zone = "Europe/Berlin"  # 2:30 comes twice that night; this is the second
    bob.save()
    client.force_login(bob)
    page = client.get(f"/tickets/{ticket.pk}/edit/").context["form"]
    sent = {name: page[name].value() or "" for name in page.fields}
    sent["due_at"] = "2031-10-26T02:30:07"
    sent["description"] = "one\r\ntwo"
    assert client.post(f"/tickets/{ticket.pk}/edit/", sent).status_code == 302
    assert not ticket.events.filter(kind="changed").exists()


def test_an_untouched_due_date_is_in_nobodys_way(client, make_ticket, alice, bob, tomorrow):
    ticket = make_ticket(due_at=datetime(2031, 10, 26, 1, 30, 7, 999, tzinfo=UTC))
    bob.time_zone = "Europe/Berlin"  # 2:30 comes twice that night; this is the second
    bob.save()
    sent = {"subject": "Bob's", "team": ticket.team_id, "status": "open", "priority": "normal"}
    sent |= {"due_at": "2031-10-26T02:30:07", "version": ticket.version}
    ticket.set_due(tomorrow, by=alice)
    client.force_login(bob)
    assert client.post(f"/tickets/{ticket.pk}/edit/", sent).status_code == 302
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.due_at) == ("Bob's", tomorrow)


def test_fields_that_only_i_changed_are_saved_beside_anothers(client, ticket, alice, bob, form):
    sent = form(bob, subject="Bob's subject")
    ticket.set_priority("urgent", by=alice)
    client.force_login(bob)
    assert client.post(f"/tickets/{ticket.pk}/edit/", sent).status_code == 302
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.priority) == ("Bob's subject", "urgent")


def test_fields_both_changed_are_shown_side_by_side(client, ticket, alice, bob, form):
    sent = form(bob, subject="Bob's subject", priority="low")
    ticket.edit(by=alice, changes={"subject": "Alice's subject"})
    client.force_login(bob)
    answer = client.post(f"/tickets/{ticket.pk}/edit/", sent)
    page = answer.content.decode()
    ticket.refresh_from_db()
    assert answer.status_code == 409
    assert (ticket.subject, ticket.priority) == ("Alice's subject", "low")
    assert 'value="Bob&#x27;s subject"' in page  # kept in the form
    assert "<dd>Alice&#x27;s subject<" in page
    assert answer.context["form"]["version"].value() == ticket.version
    assert answer.context["saved_fields"] == ["Priority"]


def test_saving_again_after_a_conflict_decides(client, ticket, alice, bob, form):
    sent = form(bob, subject="Bob's subject")
    ticket.edit(by=alice, changes={"subject": "Alice's subject", "tags": ["alice"]})
    client.force_login(bob)
    shown = client.post(f"/tickets/{ticket.pk}/edit/", sent).context["form"]
    again = {name: shown[name].value() or "" for name in shown.fields}
    assert client.post(f"/tickets/{ticket.pk}/edit/", again).status_code == 302
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.tags) == ("Bob's subject", ["alice"])


def test_another_conflict_after_a_conflict_is_shown_again(client, ticket, alice, bob, form):
    sent = form(bob, subject="Bob's subject")
    ticket.edit(by=alice, changes={"subject": "Alice's first"})
    client.force_login(bob)
    shown = client.post(f"/tickets/{ticket.pk}/edit/", sent).context["form"]
    again = {name: shown[name].value() or "" for name in shown.fields}
    ticket.edit(by=alice, changes={"subject": "Alice's second"})
    assert client.post(f"/tickets/{ticket.pk}/edit/", again).status_code == 409


def test_bad_input_loses_nothing(client, ticket, bob, form):
    client.force_login(bob)
    sent = form(bob, subject="", description="Long text", due_at="soon", version="x")
    answer = client.post(f"/tickets/{ticket.pk}/edit/", sent)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Long text" in page
    assert "soon" in page


@pytest.mark.parametrize("version", ["0", "-1", "999", "9" * 30])
def test_a_version_that_never_was_is_refused(client, ticket, bob, form, version):
    client.force_login(bob)
    sent = form(bob, subject="New", version=version)
    assert client.post(f"/tickets/{ticket.pk}/edit/", sent).status_code == 422
    ticket.refresh_from_db()
    assert ticket.subject == "Broken printer"


def test_an_assignee_who_left_the_team_is_no_obstacle(client, ticket, alice, bob, form):
    ticket.assign(bob, by=alice)
    bob.memberships.all().delete()
    client.force_login(alice)
    answer = client.post(f"/tickets/{ticket.pk}/edit/", form(alice, subject="New"))
    ticket.refresh_from_db()
    assert answer.status_code == 302
    assert (ticket.subject, ticket.assignee) == ("New", bob)


def test_a_ticket_moves_only_to_teams_one_works(client, ticket, bob, billing, form):
    client.force_login(bob)
    answer = client.post(f"/tickets/{ticket.pk}/edit/", form(bob, team=billing.pk))
    assert answer.status_code == 422
