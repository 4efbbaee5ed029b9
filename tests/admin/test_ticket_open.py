import pytest
from django.urls import reverse

from tickets.models import Ticket

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]
ADD = reverse("admin:tickets_ticket_add")


@pytest.fixture
def fields(support, ticket_form):
    return ticket_form(Ticket(team=support, subject="Lost key"), version_seen="")


def test_it_opens_a_ticket_with_history(client, bob, fields):
    client.force_login(bob)
    assert client.get(ADD).status_code == 200
    response = client.post(ADD, fields)
    assert response.status_code == 302, response.context["errors"]
    ticket = Ticket.objects.get()
    assert (ticket.subject, ticket.creator) == ("Lost key", bob)
    assert [event.kind for event in ticket.events.all()] == ["created"]


def test_it_schedules_the_reminder(client, bob, fields):
    client.force_login(bob)
    client.post(ADD, fields | {"due_at_0": "2031-01-01", "due_at_1": "09:00:00"})
    assert Ticket.objects.get().background_tasks.get().kind == "REMINDER"


def test_a_team_of_others_is_no_choice(client, charlie, fields):
    client.force_login(charlie)
    response = client.post(ADD, fields)
    assert response.status_code == 200
    assert "team" in response.context["adminform"].form.errors
    assert not Ticket.objects.exists()


def test_a_bad_value_is_shown_in_the_form(client, bob, fields):
    client.force_login(bob)
    response = client.post(ADD, fields | {"subject": " ", "requester_email": "x"})
    assert response.status_code == 200
    assert set(response.context["adminform"].form.errors) == {"subject", "requester_email"}
    assert not Ticket.objects.exists()
