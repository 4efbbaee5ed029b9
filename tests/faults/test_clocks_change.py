"""Clocks go forward and back: a reminder fires once, at the instant that was meant.

An hour that does not exist is read by the offset before the change (so it comes out after the gap),
and one that exists twice means the first; an offset says which is meant. Lord Howe's clocks move
by half an hour, Newfoundland's offset has one.
"""

from datetime import datetime, timedelta

import pytest
from django.db.models import F

from tasks import queue
from tasks.clock import database_now
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tasks.records import microseconds
from tasks.worker import run_job
from tickets.models import EventKind, Notification, Ticket, TicketEvent

pytestmark = pytest.mark.django_db

BERLIN, ST_JOHNS, LORD_HOWE = "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"

TYPED = [
    # zone, what is typed, the instant, what the form then shows
    (BERLIN, "2031-03-30T01:59", "2031-03-30T00:59Z", "2031-03-30T01:59"),
    (BERLIN, "2031-03-30T02:30", "2031-03-30T01:30Z", "2031-03-30T03:30"),  # does not exist
    (BERLIN, "2031-03-30T03:00", "2031-03-30T01:00Z", "2031-03-30T03:00"),
    (BERLIN, "2031-10-26T02:30", "2031-10-26T00:30Z", "2031-10-26T02:30"),  # exists twice
    (BERLIN, "2031-10-26T02:30+01:00", "2031-10-26T01:30Z", "2031-10-26T02:30"),
    (BERLIN, "2031-10-26T03:00", "2031-10-26T02:00Z", "2031-10-26T03:00"),
    (ST_JOHNS, "2031-03-09T02:30", "2031-03-09T06:00Z", "2031-03-09T03:30"),
    (ST_JOHNS, "2031-11-02T01:30", "2031-11-02T04:00Z", "2031-11-02T01:30"),
    (ST_JOHNS, "2031-11-02T01:30-03:30", "2031-11-02T05:00Z", "2031-11-02T01:30"),
    (LORD_HOWE, "2031-10-05T02:15", "2031-10-04T15:45Z", "2031-10-05T02:45"),
    (LORD_HOWE, "2031-04-06T01:45", "2031-04-05T14:45Z", "2031-04-06T01:45"),
]


@pytest.fixture
def clock_shows():
    """``clock_shows(instant)``: as if it were that now; waiting tasks come as much nearer."""
    passed = timedelta()

    def move(instant):
        nonlocal passed
        more = instant - database_now() - passed
        BackgroundTask.objects.waiting().update(run_at=F("run_at") - more, dispatched_at=None)
        passed += more

    return move


def reminded():
    return list(Notification.objects.filter(kind="reminder").values_list("user__username"))


def one_round():
    """What dispatcher and worker do: hand over, and run what is in the list."""
    dispatch_once()
    (task,) = BackgroundTask.objects.filter(kind="REMINDER").exclude(status=TaskStatus.CANCELLED)
    record = queue.view_of([task]).records[task.pk]
    for _ in range(2):  # a message that comes too early, or twice, or after the end
        run_job(task.pk, task.run, record.message if record else "")
    task.refresh_from_db()
    return task.status


@pytest.fixture
def typed_by_bob(client, bob, support):
    """``typed_by_bob(zone, text)``: the ticket that bob opens with this in the field "due"."""

    def open_ticket(zone, text):
        bob.time_zone = zone
        bob.save()
        client.force_login(bob)
        fields = {"team": support.pk, "subject": "Night shift", "due_at": text}
        assert client.post("/tickets/new/", fields).status_code == 302
        return Ticket.objects.get()

    return open_ticket


@pytest.mark.parametrize(("zone", "text", "instant", "shown"), TYPED)
def test_what_was_typed_is_the_instant_that_was_meant_and_reminds_then_and_once(
    typed_by_bob, client, clock_shows, empty_queue, zone, text, instant, shown
):
    instant = datetime.fromisoformat(instant)
    ticket = typed_by_bob(zone, text)
    assert ticket.due_at == instant
    assert f'value="{shown}"' in client.get(f"/tickets/{ticket.pk}/edit/").content.decode()
    reminder = BackgroundTask.objects.get(kind="REMINDER")
    assert reminder.run_at == instant
    assert one_round() == TaskStatus.WAITING
    assert empty_queue.zscore("teamdesk:delayed", reminder.job_id) == microseconds(instant)

    clock_shows(instant - timedelta(minutes=10))  # the smallest mistake would be half an hour
    assert one_round() == TaskStatus.WAITING
    assert reminded() == []
    clock_shows(instant)
    assert one_round() == TaskStatus.COMPLETED
    assert one_round() == TaskStatus.COMPLETED
    assert reminded() == [("bob",)]
    assert TicketEvent.objects.filter(kind=EventKind.REMINDED).count() == 1


@pytest.mark.parametrize("text", ["2031-10-26T02:30", "2031-10-26T02:30+01:00"])
def test_an_edit_of_something_else_leaves_either_of_the_two_hours_alone(typed_by_bob, client, text):
    """Both are shown alike; what was not touched must not become the other."""
    ticket = typed_by_bob(BERLIN, text)
    due_at, revision = ticket.due_at, ticket.reminder_revision
    fields = {
        "team": ticket.team_id,
        "subject": "Day shift",
        "priority": ticket.priority,
        "status": ticket.status,
        "due_at": "2031-10-26T02:30",
        "version": ticket.version,
    }
    assert client.post(f"/tickets/{ticket.pk}/edit/", fields).status_code == 302
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.due_at) == ("Day shift", due_at)
    assert ticket.reminder_revision == revision
    assert BackgroundTask.objects.get(kind="REMINDER").run_at == due_at


def test_from_the_first_of_two_hours_to_the_second_is_one_reminder_an_hour_later(
    typed_by_bob, client, clock_shows
):
    ticket = typed_by_bob(BERLIN, "2031-10-26T02:30")
    first = ticket.due_at
    answer = client.post(f"/tickets/{ticket.pk}/due/", {"due_at": "2031-10-26T02:30+01:00"})
    assert answer.status_code == 302
    waiting = BackgroundTask.objects.waiting().get(kind="REMINDER")
    assert waiting.run_at == first + timedelta(hours=1)
    clock_shows(first + timedelta(minutes=50))
    assert one_round() == TaskStatus.WAITING
    clock_shows(first + timedelta(hours=1))
    assert one_round() == TaskStatus.COMPLETED
    assert reminded() == [("bob",)]
