"""Notifications: once per cause, and never about a ticket one may not see."""

import pytest
from django.db import transaction

from tickets.models import Notification


def notify(people, **more):
    return Notification.objects.notify(people, **({"kind": "commented", "cause": "c:1"} | more))


def test_it_tells_each_once_per_cause(alice, bob):
    assert notify([alice, bob, alice, None]) == 2
    assert notify([alice, bob]) == 0
    assert notify([alice], cause="c:2") == 1
    assert Notification.objects.of(alice).count() == 2


def test_it_skips_the_inactive(alice, bob):
    bob.is_active = False
    bob.save()
    assert notify([alice, bob]) == 1


def test_it_skips_who_may_not_see_the_ticket(ticket, alice, vera, charlie, root):
    assert notify([alice, vera, charlie, root], ticket=ticket, text="Printer") == 3
    assert not Notification.objects.filter(user=charlie).exists()


def test_it_needs_nobody(ticket):
    assert notify([]) == notify([None]) == 0


def test_reading_marks_only_ones_own(alice, bob):
    notify([alice, bob])
    assert Notification.objects.of(alice).mark_read() == 1
    assert Notification.objects.of(alice).mark_read() == 0
    assert Notification.objects.of(alice).get().read_at is not None
    assert Notification.objects.of(bob).unread().count() == 1


def test_a_ticket_that_became_invisible_takes_its_notifications_along(ticket, bob, support):
    notify([bob], ticket=ticket, text="Printer")
    notify([bob], kind="export_ready", cause="export:1")
    assert Notification.objects.of(bob).count() == 2
    support.memberships.filter(user=bob).delete()
    assert Notification.objects.of(bob).get().kind == "export_ready"


@pytest.mark.django_db(transaction=True)
def test_two_at_once_for_the_same_cause_tell_once(alice, bob, other, wait_until):
    with transaction.atomic():
        assert notify([bob, alice]) == 2
        second = other(lambda: notify([alice, bob]))
        wait_until(second.is_blocked, "the second waits for the first")
    assert second.result() == 0
    assert Notification.objects.count() == 2
