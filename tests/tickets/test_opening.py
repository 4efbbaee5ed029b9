"""Opening a ticket: ticket, history and reminder exist together or not at all."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.utils import timezone

from tasks.models import BackgroundTask
from tickets.models import Notification, Ticket, TicketEvent


def test_it_stores_what_bob_said(support, bob, alice, tomorrow):
    ticket = Ticket.objects.open(
        by=bob,
        team=support,
        subject="  Printer\non fire ",
        description="It burns.",
        priority="urgent",
        requester_name="Rita",
        requester_email="rita@example.org",
        assignee=alice,
        tags=["printer", " Fire ", "PRINTER", ""],
        due_at=tomorrow,
    )
    stored = Ticket.objects.get(pk=ticket.pk)
    assert stored.subject == "Printer on fire"
    assert (stored.status, stored.priority, stored.creator) == ("open", "urgent", bob)
    assert stored.tags == ["printer", "Fire"]
    assert stored.due_at == tomorrow
    assert (stored.version, stored.reminder_revision) == (1, 1)
    assert stored.created_at == stored.updated_at == ticket.created_at


def test_it_writes_history_and_the_reminder(support, bob, tomorrow):
    ticket = Ticket.objects.open(by=bob, team=support, subject="S", due_at=tomorrow)
    event = ticket.events.get()
    assert (event.kind, event.actor, event.actor_text) == ("created", bob, "Bob Berg")
    task = BackgroundTask.objects.get()
    assert (task.kind, task.status, task.run_at) == ("REMINDER", "WAITING", tomorrow)
    assert (task.ticket, task.team, task.owner) == (ticket, support, bob)
    assert task.reminder_revision == ticket.reminder_revision == 1


def test_it_schedules_nothing_without_a_due_date(support, bob):
    ticket = Ticket.objects.open(by=bob, team=support, subject="S")
    assert ticket.reminder_revision == 0
    assert not BackgroundTask.objects.exists()


def test_it_schedules_nothing_for_a_ticket_that_is_already_closed(support, bob, tomorrow):
    ticket = Ticket.objects.open(
        by=bob, team=support, subject="S", status="closed", due_at=tomorrow
    )
    assert ticket.closed_at == ticket.resolved_at == ticket.created_at
    assert not BackgroundTask.objects.exists()


def test_it_reminds_at_once_of_a_due_date_already_past(support, bob):
    due = timezone.now() - timedelta(hours=1)
    Ticket.objects.open(by=bob, team=support, subject="S", due_at=due)
    assert BackgroundTask.objects.waiting().with_is_due().get().is_due


@pytest.mark.parametrize("table", ["tickets_ticket", "tickets_ticketevent", "tasks_backgroundtask"])
@pytest.mark.django_db(transaction=True)
def test_it_leaves_none_of_the_three_when_one_cannot_be_written(support, bob, tomorrow, table):
    refused = []

    def disk_full(execute, sql, *rest):
        if re.search(rf'INSERT INTO "?{table}"?\s', sql):
            refused.append(sql)
            raise RuntimeError("disk full")
        return execute(sql, *rest)

    with connection.execute_wrapper(disk_full), pytest.raises(RuntimeError, match="disk full"):
        Ticket.objects.open(by=bob, team=support, subject="S", due_at=tomorrow)
    assert len(refused) == 1
    assert not Ticket.objects.exists()
    assert not TicketEvent.objects.exists()
    assert not BackgroundTask.objects.exists()


def test_it_tells_the_assignee_but_not_those_who_assign_themselves(support, bob, alice):
    ticket = Ticket.objects.open(by=bob, team=support, subject="For Alice", assignee=alice)
    told = Notification.objects.get()
    assert (told.user, told.kind, told.ticket, told.text) == (
        alice,
        "assigned",
        ticket,
        "For Alice",
    )
    Ticket.objects.open(by=bob, team=support, subject="For me", assignee=bob)
    assert Notification.objects.count() == 1


@pytest.mark.parametrize("name", ["vera", "charlie"])
def test_it_is_refused_to_viewers_and_outsiders(support, name, request):
    with pytest.raises(PermissionDenied):
        Ticket.objects.open(by=request.getfixturevalue(name), team=support, subject="S")
    assert not Ticket.objects.exists()


def test_it_is_refused_to_people_who_left(support, bob):
    bob.is_active = False
    bob.save()
    with pytest.raises(PermissionDenied):
        Ticket.objects.open(by=bob, team=support, subject="S")


def test_the_system_needs_a_reason(support):
    with pytest.raises(ValueError, match="reason"):
        Ticket.objects.open(by=None, team=support, subject="S")
    ticket = Ticket.objects.open(by=None, team=support, subject="S", reason="mail gateway")
    event = ticket.events.get()
    assert (event.actor, event.reason) == (None, "mail gateway")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("subject", "   "),
        ("subject", "x" * 201),
        ("subject", "a\0b"),
        ("description", "a\0b"),
        ("description", "half a \ud83d pair"),
        ("status", "nonsense"),
        ("priority", None),
        ("requester_email", "not an address"),
        ("requester_name", "n" * 201),
        ("tags", ["t" * 51]),
        ("tags", [f"t{number}" for number in range(21)]),
        ("tags", ["a\0b"]),
        ("due_at", datetime(2030, 1, 1)),  # naive
        ("due_at", datetime(9999, 12, 31, tzinfo=UTC)),
        ("due_at", "tomorrow"),
        ("team", None),
    ],
)
def test_it_refuses_bad_values_by_field(support, bob, field, value):
    good = {"team": support, "subject": "S"}
    with pytest.raises(ValidationError) as refusal:
        Ticket.objects.open(by=bob, **(good | {field: value}))
    assert list(refusal.value.message_dict) == [field]
    assert not Ticket.objects.exists()


def test_it_refuses_an_assignee_who_cannot_work_the_team(support, bob, vera, charlie, root):
    for person in (vera, charlie):
        with pytest.raises(ValidationError) as refusal:
            Ticket.objects.open(by=bob, team=support, subject="S", assignee=person)
        assert list(refusal.value.message_dict) == ["assignee"]
    assert Ticket.objects.open(by=bob, team=support, subject="S", assignee=root).assignee == root
