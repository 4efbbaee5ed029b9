import pytest
from django.urls import reverse

from tickets.models import Ticket

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]
TICKETS = reverse("admin:tickets_ticket_changelist")


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [
        ("resolve", "status", "resolved"),
        ("close", "status", "closed"),
        ("priority_low", "priority", "low"),
        ("priority_high", "priority", "high"),
        ("priority_urgent", "priority", "urgent"),
    ],
)
def test_they_change_tickets_through_the_verbs(
    client, ticket, bob, run_action, told, action, field, value
):
    client.force_login(bob)
    response = run_action(client, TICKETS, action, ticket)
    assert told(response) == f"Changed: #{ticket.pk}"
    ticket.refresh_from_db()
    assert getattr(ticket, field) == value
    assert ticket.events.get(field=field).actor == bob


def test_a_person_takes_tickets(client, ticket, bob, run_action):
    client.force_login(bob)
    run_action(client, TICKETS, "assign_to_me", ticket)
    ticket.refresh_from_db()
    assert ticket.assignee == bob


def test_each_row_has_its_own_result(client, support, alice, bob, ticket, run_action, told):
    low = Ticket.objects.open(by=alice, team=support, subject="Low", priority="low")
    client.force_login(bob)
    lines = told(run_action(client, TICKETS, "priority_low", ticket, low)).splitlines()
    assert f"Changed: #{ticket.pk}" in lines
    assert f"Nothing to change: #{low.pk}" in lines


def test_what_the_verb_refuses_is_told_and_stops_no_other(
    client, billing, support, vera, charlie, ticket, run_action, told
):
    # vera works tickets of billing and only reads those of support.
    billing.memberships.create(user=vera, role="agent")
    other = Ticket.objects.open(by=charlie, team=billing, subject="Invoice")
    client.force_login(vera)
    lines = told(run_action(client, TICKETS, "assign_to_me", ticket, other)).splitlines()
    assert f"Changed: #{other.pk}" in lines
    assert any(line.startswith("Not changed, ") and f"#{ticket.pk}" in line for line in lines)
    ticket.refresh_from_db()
    assert ticket.assignee is None


def test_a_superuser_outside_the_team_is_told_what_happened(client, root, ticket, run_action, told):
    client.force_login(root)
    assert told(run_action(client, TICKETS, "assign_to_me", ticket))


def test_tickets_of_others_are_not_touched(client, charlie, ticket, run_action):
    client.force_login(charlie)
    run_action(client, TICKETS, "close", ticket)
    ticket.refresh_from_db()
    assert ticket.status == "open"


def test_view_only_staff_neither_see_nor_run_them(client, make_staff, support, ticket, run_action):
    nora = make_staff("nora", "tickets.view_ticket")
    support.memberships.create(user=nora, role="agent")
    client.force_login(nora)
    assert 'value="resolve"' not in client.get(TICKETS).content.decode()
    run_action(client, TICKETS, "resolve", ticket)
    ticket.refresh_from_db()
    assert ticket.status == "open"
