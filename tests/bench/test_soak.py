"""The soak's check finds what is lost, doubled or told at the wrong time: a check that can fail."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from bench.soaking.cast import Cast
from bench.soaking.tickets import Story, TicketLoad
from tasks.models import BackgroundTask
from tasks.worker import run_job
from tickets.models import Notification, Ticket

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def load(alice, bob, charlie, support, billing):
    """What alice was told of one ticket: due an hour ago, reminded, then moved away."""
    load = TicketLoad("seed", "", Cast(alice, bob, charlie, support, billing, 0), 0)
    due = datetime.now(UTC) - timedelta(hours=1)
    ticket = Ticket.objects.open(by=alice, team=support, subject="seed-0", due_at=due, assignee=bob)
    assert run_job(ticket.background_tasks.get(kind="REMINDER").pk, 0) == "COMPLETED"
    ticket.set_due(None, by=alice)
    people = {alice.pk, bob.pk}
    load.stories.append(Story("seed-0", due, people, pk=ticket.pk, changes=[("due_at", None)]))
    return load


def only_breach(load) -> str:
    (breach,) = load.breaches()
    return breach


def test_it_finds_nothing_where_all_was_done(load):
    assert load.breaches() == []


def test_it_finds_an_accepted_ticket_that_is_not_there(load):
    load.stories.append(Story("seed-1", None, set(), pk=4711))
    assert "lost: the accepted ticket 4711" in only_breach(load)


def test_it_finds_an_accepted_change_that_is_not_there(load):
    load.stories[0].changes.append(("status", "closed"))
    assert "lost or doubled" in only_breach(load)


def test_it_knows_nothing_of_a_change_whose_answer_was_lost(load):
    load.stories[0].doubtful = ("status", "closed")
    assert load.breaches() == []


def test_it_finds_a_reminder_that_was_never_written(load):
    BackgroundTask.objects.filter(kind="REMINDER").delete()
    assert "lost: no reminder of revision 1" in only_breach(load)


def test_it_finds_who_was_not_told(load, bob):
    Notification.objects.filter(user=bob, kind="reminder").delete()
    assert "were told" in only_breach(load)


def test_it_finds_a_completed_reminder_without_its_effect(load):
    ticket = Ticket.objects.get()
    ticket.events.filter(kind="reminded").delete()
    Notification.objects.filter(kind="reminder").delete()
    assert "without a reminder" in only_breach(load)


def test_it_finds_a_second_reminder_and_one_after_its_time(load):
    event = Ticket.objects.get().events.get(kind="reminded")
    event.pk, event.at = None, Now()
    event.save()
    breaches = load.breaches()
    assert any("doubled: reminded 2 times" in breach for breach in breaches)
    assert any("although overtaken" in breach for breach in breaches)
