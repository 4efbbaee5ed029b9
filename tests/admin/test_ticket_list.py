from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tickets.models import Ticket

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]
TICKETS = reverse("admin:tickets_ticket_changelist")


@pytest.fixture
def listed(client, bob):
    client.force_login(bob)

    def subjects(**query):
        response = client.get(TICKETS, query)
        assert response.status_code == 200, response
        return {ticket.subject for ticket in response.context["cl"].result_list}

    return subjects


@pytest.fixture(autouse=True)
def _tickets(support, alice, bob):
    def open_ticket(subject, **values):
        return Ticket.objects.open(by=alice, team=support, subject=subject, **values)

    past = timezone.now() - timedelta(days=1)
    open_ticket("Printer", due_at=past, requester_email="ria@example.org")
    open_ticket("Scanner", assignee=bob, priority="high")
    open_ticket("Fax", status="closed")


def test_it_filters(listed, support):
    assert listed() == {"Printer", "Scanner", "Fax"}
    assert listed(concern="mine") == {"Scanner"}
    assert listed(concern="nobody") == {"Printer", "Fax"}
    assert listed(concern="live") == {"Printer", "Scanner"}
    assert listed(concern="overdue") == {"Printer"}
    assert listed(status__exact="closed") == {"Fax"}
    assert listed(priority__exact="high") == {"Scanner"}
    assert listed(team=support.pk) == {"Printer", "Scanner", "Fax"}


@pytest.mark.parametrize("team", ["x", "9" * 40, "-1"])
def test_a_team_that_is_no_choice_does_not_filter(listed, team):
    assert len(listed(team=team)) == 3


def test_the_team_filter_names_only_teams_one_may_see(client, listed, billing):
    listed()
    assert "Billing" not in client.get(TICKETS).content.decode()


def test_it_finds_by_number_words_and_requester(listed):
    printer = Ticket.objects.get(subject="Printer")
    assert listed(q=f"#{printer.pk}") == listed(q=str(printer.pk)) == {"Printer"}
    assert listed(q="prin") == {"Printer"}
    assert listed(q="ria@") == {"Printer"}
    assert listed(q="9" * 40) == set()


def test_it_takes_the_same_queries_for_many_rows(client, listed, support, alice, bob):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            listed()
        return len(captured)

    few = queries()
    for number in range(12):
        Ticket.objects.open(by=alice, team=support, subject=f"More {number}", assignee=bob)
    assert queries() == few


def test_the_form_renders_no_list_of_all_people(client, listed, make_staff):
    for number in range(5):
        make_staff(f"extra{number}")
    ticket = Ticket.objects.get(subject="Printer")
    listed()
    content = client.get(reverse("admin:tickets_ticket_change", args=[ticket.pk])).content.decode()
    assert "extra3" not in content
