"""Opening a ticket."""

from datetime import UTC, datetime

import pytest
from django.db import transaction
from django.test import Client

from tickets.models import Ticket


@pytest.fixture
def form(support):
    """``form(**changes)``: what a browser posts."""

    def fields(**changes):
        return {
            "team": support.pk,
            "subject": "Printer on fire",
            "description": "It burns.\r\nStill.",
            "priority": "high",
            "status": "open",
            "assignee": "",
            "due_at": "",
            "requester_name": "Mara",
            "requester_email": "mara@example.org",
            "tags": "fire, printer",
        } | changes

    return fields


def test_it_opens_a_ticket(client, bob, support, form):
    client.force_login(bob)
    answer = client.post("/tickets/new/", form(assignee=bob.pk, due_at="2031-07-01T17:00"))
    ticket = Ticket.objects.get()
    assert (answer.status_code, answer.url) == (302, f"/tickets/{ticket.pk}/")
    assert ticket.creator == ticket.assignee == bob
    assert ticket.team == support
    assert (ticket.subject, ticket.priority) == ("Printer on fire", "high")
    assert ticket.description == "It burns.\nStill."
    assert ticket.tags == ["fire", "printer"]
    assert ticket.due_at == datetime(2031, 7, 1, 17, tzinfo=UTC)


def test_a_subject_and_a_team_are_enough(client, bob, support):
    client.force_login(bob)
    client.post("/tickets/new/", {"team": support.pk, "subject": "Fire"})
    ticket = Ticket.objects.get()
    assert (ticket.status, ticket.priority) == ("open", "normal")


@pytest.mark.parametrize(
    ("typed", "due_at"),
    [
        ("2031-07-01T17:00", datetime(2031, 7, 1, 9, tzinfo=UTC)),
        ("2031-07-01T17:00:30", datetime(2031, 7, 1, 9, 0, 30, tzinfo=UTC)),
        ("2031-07-01T17:00+02:00", datetime(2031, 7, 1, 15, tzinfo=UTC)),
        ("2031-07-01T17:00:00Z", datetime(2031, 7, 1, 17, tzinfo=UTC)),
    ],
)
def test_due_is_in_ones_own_zone_unless_it_names_an_offset(client, bob, form, typed, due_at):
    bob.time_zone = "Asia/Shanghai"
    bob.save()
    client.force_login(bob)
    client.post("/tickets/new/", form(due_at=typed))
    assert Ticket.objects.get().due_at == due_at


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"subject": " "}, "This field is required."),
        ({"subject": "x" * 201}, "at most 200"),
        ({"due_at": "tomorrow"}, "is not a date and time"),
        ({"due_at": "2031-13-45T00:00"}, "is not a date and time"),
        ({"due_at": "9999-12-31T23:59-12:00"}, "between the years"),
        ({"due_at": "0001-01-01T00:00+12:00"}, "between the years"),
        ({"requester_email": "nobody"}, "valid email"),
        ({"tags": "x" * 51}, "At most 50"),
        ({"priority": "huge"}, "huge"),
        ({"description": "nul\0"}, "Null characters"),
    ],
)
def test_bad_input_is_explained_and_nothing_typed_is_lost(client, bob, form, wrong, complaint):
    client.force_login(bob)
    answer = client.post("/tickets/new/", form(requester_name="Kept Name") | wrong)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert complaint in page
    assert "Kept Name" in page
    assert "It burns." in page or "description" in wrong
    assert not Ticket.objects.exists()


def test_only_teams_that_one_may_work_are_offered(client, bob, alice, billing, form):
    client.force_login(bob)
    assert "Billing" not in client.get("/tickets/new/").content.decode()
    assert client.post("/tickets/new/", form(team=billing.pk)).status_code == 422
    assert not Ticket.objects.exists()


def test_a_viewer_cannot_open_one(client, vera, form):
    client.force_login(vera)
    assert client.get("/tickets/new/").status_code == 403
    assert client.post("/tickets/new/", form()).status_code == 403
    assert not Ticket.objects.exists()
    assert b"/tickets/new/" not in client.get("/tickets/").content


def test_only_agents_and_leads_can_be_assigned(client, bob, vera, charlie, form):
    client.force_login(bob)
    for stranger in (vera, charlie):
        assert client.post("/tickets/new/", form(assignee=stranger.pk)).status_code == 422
    assert not Ticket.objects.exists()


def test_people_are_offered_by_team(client, alice, bob, billing, charlie):
    billing.memberships.create(user=alice, role="agent")
    client.force_login(alice)
    page = client.get("/tickets/new/").content.decode()
    groups = page.split("<optgroup ")[1:]
    assert ["Charlie Chen" in group for group in groups] == [True, False]
    assert ["Bob Berg" in group for group in groups] == [False, True]
    assert ["Alice Ames" in group for group in groups] == [True, True]


def test_sending_the_form_twice_makes_one_ticket(client, bob, form):
    client.force_login(bob)
    submission = client.get("/tickets/new/").context["submission"]
    first = client.post("/tickets/new/", form(submission=submission))
    second = client.post("/tickets/new/", form(submission=submission))
    assert first.url == second.url
    assert Ticket.objects.count() == 1
    other = client.get("/tickets/new/").context["submission"]
    client.post("/tickets/new/", form(submission=other))
    assert Ticket.objects.count() == 2


def test_a_corrected_form_makes_its_ticket(client, bob, form):
    client.force_login(bob)
    refused = client.post("/tickets/new/", form(subject="", submission="s1"))
    assert refused.context["submission"] == "s1"
    assert client.post("/tickets/new/", form(submission="s1")).status_code == 302


def test_the_form_of_the_back_button_opens_what_it_says_now(client, bob, form):
    client.force_login(bob)
    first = client.post("/tickets/new/", form(subject="Printer", submission="s1"))
    second = client.post("/tickets/new/", form(subject="Scanner", submission="s1"))
    assert first.url != second.url
    assert set(Ticket.objects.values_list("subject", flat=True)) == {"Printer", "Scanner"}


@pytest.mark.django_db(transaction=True)
def test_a_double_click_waits_and_gets_the_same_ticket(client, bob, form, other, wait_until):
    """The second request arrives while the first is still in its transaction."""
    client.force_login(bob)

    def second_click():
        again = Client()
        again.cookies = client.cookies
        return again.post("/tickets/new/", form(submission="s1")).url

    with transaction.atomic():
        first = client.post("/tickets/new/", form(submission="s1")).url
        clicked = other(second_click)
        wait_until(clicked.is_blocked, "the second click waits for the first")
    assert clicked.result() == first
    assert Ticket.objects.count() == 1
