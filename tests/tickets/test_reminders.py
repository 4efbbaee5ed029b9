"""A due date reminds once, of the date that holds, and never of one that was moved or cleared."""

import threading
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tickets.models import Notification, Ticket
from tickets.reminders import deliver_reminder


@pytest.fixture
def overdue(ticket, alice, bob, yesterday):
    """alice opened it, bob works on it, its reminder is due."""
    ticket.edit(by=alice, changes={"assignee": bob, "due_at": yesterday})
    Notification.objects.all().delete()
    return ticket


def reminder_of(ticket):
    return BackgroundTask.objects.filter(ticket=ticket, kind="REMINDER").latest("id")


def run(task):
    return run_job(task.pk, task.run)


def reminded():
    told = Notification.objects.filter(kind="reminder").order_by("user__username")
    return list(told.values_list("user__username", flat=True))


# What is scheduled


def test_setting_moving_and_clearing_the_due_date(
    ticket, bob, tomorrow, next_week, waiting_reminders
):
    ticket.set_due(tomorrow, by=bob)
    assert waiting_reminders(ticket) == [(1, tomorrow)]
    ticket.set_due(next_week, by=bob)
    assert waiting_reminders(ticket) == [(2, next_week)]
    ticket.set_due(None, by=bob)
    assert waiting_reminders(ticket) == []
    assert ticket.reminder_revision == 3
    statuses = BackgroundTask.objects.order_by("id").values_list("status", flat=True)
    assert list(statuses) == [TaskStatus.CANCELLED, TaskStatus.CANCELLED]
    assert BackgroundTask.objects.exclude(last_error="").count() == 2


@pytest.mark.parametrize("verb", ["resolve", "close"])
def test_finishing_cancels_and_reopening_schedules_anew(
    ticket, bob, tomorrow, waiting_reminders, verb
):
    ticket.set_due(tomorrow, by=bob)
    getattr(ticket, verb)(by=bob)
    assert waiting_reminders(ticket) == []
    ticket.reopen(by=bob)
    assert waiting_reminders(ticket) == [(3, tomorrow)]


def test_closing_a_resolved_ticket_changes_nothing(ticket, bob, tomorrow):
    ticket.set_due(tomorrow, by=bob)
    ticket.resolve(by=bob)
    ticket.close(by=bob)
    assert ticket.reminder_revision == 2


def test_a_due_date_set_on_a_closed_ticket_waits_for_its_reopening(
    ticket, bob, tomorrow, waiting_reminders
):
    ticket.close(by=bob)
    ticket.set_due(tomorrow, by=bob)
    assert waiting_reminders(ticket) == []
    ticket.reopen(by=bob)
    assert waiting_reminders(ticket) == [(ticket.reminder_revision, tomorrow)]


def test_reopening_with_an_old_due_date_does_not_remind(ticket, bob, yesterday, waiting_reminders):
    ticket.close(by=bob)
    ticket.set_due(yesterday, by=bob)
    ticket.reopen(by=bob)
    assert waiting_reminders(ticket) == []


def test_reopening_with_a_past_due_date_just_set_reminds(ticket, bob, yesterday, waiting_reminders):
    ticket.close(by=bob)
    ticket.edit(by=bob, changes={"status": "open", "due_at": yesterday})
    assert waiting_reminders(ticket) == [(2, yesterday)]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "pending"},
        {"status": "on_hold"},
        {"subject": "Other"},
        {"priority": "urgent"},
        {"tags": ["x"]},
    ],
)
def test_other_changes_leave_it_alone(ticket, bob, tomorrow, waiting_reminders, changes):
    ticket.set_due(tomorrow, by=bob)
    task = reminder_of(ticket)
    ticket.edit(by=bob, changes=changes)
    ticket.comment(by=bob, body="Hello")
    ticket.assign(bob, by=bob)
    assert waiting_reminders(ticket) == [(1, tomorrow)]
    assert reminder_of(ticket) == task


def test_the_same_due_date_again_leaves_it_alone(ticket, bob, tomorrow):
    ticket.set_due(tomorrow, by=bob)
    ticket.set_due(tomorrow, by=bob)
    assert ticket.reminder_revision == 1


def test_it_moves_with_the_ticket_to_another_team(
    ticket, root, billing, tomorrow, waiting_reminders
):
    ticket.set_due(tomorrow, by=root)
    ticket.edit(by=root, changes={"team": billing})
    assert waiting_reminders(ticket) == [(1, tomorrow)]
    assert reminder_of(ticket).team == billing


def test_the_owner_is_the_creator_whoever_sets_the_date(ticket, alice, bob, tomorrow):
    ticket.set_due(tomorrow, by=bob)
    assert reminder_of(ticket).owner == alice


def test_other_tickets_keep_theirs(ticket, alice, support, tomorrow, waiting_reminders):
    neighbour = Ticket.objects.open(by=alice, team=support, subject="N", due_at=tomorrow)
    ticket.set_due(tomorrow, by=alice)
    ticket.close(by=alice)
    assert waiting_reminders(neighbour) == [(1, tomorrow)]


# What is delivered


def test_it_tells_owner_and_assignee_and_writes_history(overdue):
    assert run(reminder_of(overdue)) == TaskStatus.COMPLETED
    assert reminded() == ["alice", "bob"]
    told = Notification.objects.first()
    assert (told.ticket, told.text) == (overdue, "Printer")
    event = overdue.events.get(kind="reminded")
    assert (event.actor, event.reason) == (None, "due date reached")
    assert event.new_text == "Alice Ames, Bob Berg"


def test_one_person_in_both_roles_is_told_once(overdue, alice):
    overdue.assign(alice, by=alice)
    run(reminder_of(overdue))
    assert reminded() == ["alice"]


def test_running_twice_does_not_tell_twice(overdue):
    task = reminder_of(overdue)
    for _ in range(2):
        with transaction.atomic():
            deliver_reminder(task, None)()
    assert reminded() == ["alice", "bob"]
    assert overdue.events.filter(kind="reminded").count() == 1


def test_the_current_assignee_is_told_not_the_one_of_then(overdue, bob, alice):
    overdue.assign(None, by=alice)
    run(reminder_of(overdue))
    assert reminded() == ["alice"]


def test_people_who_left_or_lost_access_are_not_told(overdue, alice, bob, support):
    support.memberships.filter(user=alice).delete()
    bob.is_active = False
    bob.save()
    assert run(reminder_of(overdue)) == TaskStatus.COMPLETED
    assert reminded() == []
    assert not overdue.events.filter(kind="reminded").exists()


def test_a_viewer_may_be_reminded(overdue, alice, support):
    support.memberships.filter(user=alice).update(role="viewer")
    run(reminder_of(overdue))
    assert "alice" in reminded()


def test_a_superuser_outside_the_team_may_be_reminded(overdue, root):
    overdue.assign(root, by=root)
    run(reminder_of(overdue))
    assert reminded() == ["alice", "root"]


@pytest.mark.parametrize("owner_gone", [True, False])
def test_a_deleted_creator_or_ticket_is_no_failure(overdue, alice, owner_gone):
    task = reminder_of(overdue)
    if owner_gone:
        alice.delete()
    else:
        overdue.delete()
    assert run(task) == TaskStatus.COMPLETED
    assert reminded() == (["bob"] if owner_gone else [])


def _as_if_it_had_not_been_cancelled(task):
    """What a message or a retry of an outdated reminder finds."""
    BackgroundTask.objects.filter(pk=task.pk).update(
        status=TaskStatus.WAITING, finished_at=None, run_at=timezone.now()
    )


@pytest.mark.parametrize("change", ["move", "clear", "resolve", "close"])
def test_an_outdated_reminder_completes_quietly(overdue, bob, next_week, change):
    task = reminder_of(overdue)
    {
        "move": lambda: overdue.set_due(next_week, by=bob),
        "clear": lambda: overdue.set_due(None, by=bob),
        "resolve": lambda: overdue.resolve(by=bob),
        "close": lambda: overdue.close(by=bob),
    }[change]()
    assert run(task) is None, "the cancelled task cannot be claimed"
    _as_if_it_had_not_been_cancelled(task)
    assert run(task) == TaskStatus.COMPLETED
    assert reminded() == []


def test_a_ticket_finished_behind_the_verbs_back_is_not_reminded_of(overdue):
    """The revision still holds, so only the status says that it is done."""
    Ticket.objects.filter(pk=overdue.pk).update(status="resolved")
    assert run(reminder_of(overdue)) == TaskStatus.COMPLETED
    assert reminded() == []


def test_a_cancelled_reminder_that_someone_retries_says_nothing(overdue, alice, next_week):
    task = reminder_of(overdue)
    overdue.set_due(next_week, by=alice)
    task.refresh_from_db()
    assert task.retry(by=alice)
    assert run(task) == TaskStatus.COMPLETED
    assert reminded() == []


def test_after_a_new_due_date_it_reminds_again(overdue, bob, yesterday):
    run(reminder_of(overdue))
    overdue.set_due(yesterday + timedelta(hours=1), by=bob)
    run(reminder_of(overdue))
    assert reminded() == ["alice", "alice", "bob", "bob"]


def test_a_future_reminder_cannot_be_claimed(ticket, bob, tomorrow):
    ticket.set_due(tomorrow, by=bob)
    assert run(reminder_of(ticket)) is None


# The due date is moved while its reminder is being delivered


@pytest.mark.django_db(transaction=True)
def test_a_move_that_comes_first_wins(
    overdue, bob, next_week, other, wait_until, waiting_reminders
):
    """The worker claimed the reminder; then the date is moved; then the effect runs."""
    task = reminder_of(overdue)
    with transaction.atomic():
        Ticket.objects.select_for_update().get(pk=overdue.pk)
        worker = other(lambda: run(task))
        wait_until(worker.is_blocked, "the delivery waits for the ticket")
        overdue.set_due(next_week, by=bob)
    worker.result()
    assert reminded() == []
    assert waiting_reminders(overdue) == [(overdue.reminder_revision, next_week)]
    assert not overdue.events.filter(kind="reminded").exists()


@pytest.mark.django_db(transaction=True)
def test_a_delivery_that_comes_first_was_for_the_date_that_held(
    overdue, bob, next_week, other, wait_until, waiting_reminders, monkeypatch
):
    """The effect holds the ticket; the move waits for it, then schedules the new date once."""
    task, told, go_on = reminder_of(overdue), threading.Event(), threading.Event()
    remind = Ticket.remind

    def remind_slowly(self, *args):
        done = remind(self, *args)
        told.set()
        assert go_on.wait(30)
        return done

    monkeypatch.setattr(Ticket, "remind", remind_slowly)
    worker = other(lambda: run(task))
    assert told.wait(30)
    mover = other(lambda: Ticket.objects.get(pk=overdue.pk).set_due(next_week, by=bob))
    wait_until(mover.is_blocked, "the move waits for the delivery")
    assert reminded() == [], "not committed yet"
    go_on.set()
    assert worker.result() == TaskStatus.COMPLETED
    assert mover.result() is True
    assert reminded() == ["alice", "bob"]
    overdue.refresh_from_db()
    assert waiting_reminders(overdue) == [(overdue.reminder_revision, next_week)]
    assert overdue.events.filter(kind="reminded").count() == 1


@pytest.mark.django_db(transaction=True)
def test_closing_while_it_is_being_delivered(overdue, bob, other, wait_until, waiting_reminders):
    task = reminder_of(overdue)
    with transaction.atomic():
        Ticket.objects.select_for_update().get(pk=overdue.pk)
        worker = other(lambda: run(task))
        wait_until(worker.is_blocked, "the delivery waits for the ticket")
        overdue.close(by=bob)
    worker.result()
    assert reminded() == []
    assert waiting_reminders(overdue) == []


@pytest.mark.django_db(transaction=True)
def test_two_who_set_the_date_at_once_leave_one_reminder(
    ticket, alice, bob, tomorrow, next_week, other, wait_until, waiting_reminders
):
    with transaction.atomic():
        ticket.set_due(tomorrow, by=alice)
        second = other(lambda: Ticket.objects.get(pk=ticket.pk).set_due(next_week, by=bob))
        wait_until(second.is_blocked, "bob waits for alice")
    assert second.result() is True
    assert waiting_reminders(ticket) == [(2, next_week)]


@pytest.mark.django_db(transaction=True)
def test_a_failed_delivery_tells_nobody_and_is_tried_again(overdue, monkeypatch):
    def fail(leases):
        raise RuntimeError("the disk is full")

    task = reminder_of(overdue)
    with monkeypatch.context() as fault:
        fault.setattr("tasks.lease.record_completed", fail)
        assert run(task) == TaskStatus.WAITING
    assert reminded() == []
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=timezone.now())
    assert run(task) == TaskStatus.COMPLETED
    assert reminded() == ["alice", "bob"]
