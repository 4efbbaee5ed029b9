"""Changing a ticket: every path is edit(), which writes history, times, reminder, notifications."""

from datetime import UTC, datetime

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.utils import timezone, translation

from tickets.models import Notification, Ticket, TicketEvent


def changes_of(ticket):
    events = ticket.events.filter(kind="changed").order_by("id")
    return [(event.field, event.old_text, event.new_text) for event in events]


def test_it_writes_one_event_per_changed_field(ticket, bob):
    edit = ticket.edit(
        by=bob, changes={"subject": "Fire", "priority": "urgent", "description": "It burns."}
    )
    assert edit.saved == {"subject": "Fire", "priority": "urgent"}
    assert edit.conflicts == []
    assert changes_of(ticket) == [
        ("subject", "Printer", "Fire"),
        ("priority", "normal", "urgent"),
    ]
    event = ticket.events.get(field="priority")
    assert (event.old_value, event.new_value) == ("normal", "urgent")
    assert (event.actor, event.actor_text, event.reason) == (bob, "Bob Berg", "")
    assert event.version == ticket.version == 2
    assert event.at == ticket.updated_at > ticket.created_at


def test_it_updates_the_instance_and_the_row(ticket, bob):
    ticket.edit(by=bob, changes={"subject": "Fire", "assignee": bob})
    stored = Ticket.objects.get(pk=ticket.pk)
    for each in (ticket, stored):
        assert (each.subject, each.assignee, each.version) == ("Fire", bob, 2)


def test_no_change_leaves_no_trace(ticket, bob):
    before = Ticket.objects.filter(pk=ticket.pk).values().get()
    edit = ticket.edit(by=bob, changes={"subject": " Printer ", "tags": "fire", "due_at": None})
    assert edit.saved == {}
    assert Ticket.objects.filter(pk=ticket.pk).values().get() == before
    assert changes_of(ticket) == []


def test_it_compares_with_the_stored_row_not_with_the_stale_instance(ticket, bob, alice):
    stale = Ticket.objects.get(pk=ticket.pk)
    ticket.edit(by=alice, changes={"priority": "high", "subject": "Newer"})
    assert stale.edit(by=bob, changes={"priority": "high"}).saved == {}
    assert stale.subject == "Newer"
    assert len(changes_of(ticket)) == 2


def test_clearing_is_history_too(ticket, bob, tomorrow):
    ticket.edit(by=bob, changes={"assignee": bob, "due_at": tomorrow})
    ticket.edit(by=bob, changes={"assignee": None, "due_at": None, "tags": [], "description": ""})
    cleared = dict(ticket.events.filter(version=3).values_list("field", "new_value"))
    assert cleared == {"assignee": None, "due_at": None, "tags": [], "description": ""}
    event = ticket.events.get(version=3, field="assignee")
    assert (event.old_value, event.old_text, event.new_text) == (bob.pk, "Bob Berg", "")


def test_history_keeps_names_as_they_were(ticket, bob, alice):
    ticket.assign(bob, by=alice)
    bob.last_name = "Brand"
    bob.save()
    ticket.assign(None, by=bob)
    alice.delete()
    assert [(e.actor_text, e.old_text, e.new_text) for e in ticket.events.order_by("id")[1:]] == [
        ("Alice Ames", "", "Bob Berg"),
        ("Bob Brand", "Bob Brand", ""),
    ]


def test_history_reads_in_the_readers_language_and_time_zone(ticket, bob):
    ticket.edit(
        by=bob, changes={"status": "on_hold", "due_at": datetime(2030, 1, 1, 23, 0, tzinfo=UTC)}
    )
    status, due = ticket.events.get(field="status"), ticket.events.get(field="due_at")
    assert due.new_text == "2030-01-01 23:00 UTC"
    with translation.override("en"), timezone.override("Asia/Shanghai"):
        assert (status.old_display, status.new_display) == ("open", "on hold")
        assert due.new_display == "Jan. 2, 2030, 7 a.m."
        assert str(due.field_display) == "due"


def test_stored_text_does_not_depend_on_the_actors_language(ticket, bob):
    with translation.override("zh-hans"):
        ticket.set_status("on_hold", by=bob)
    assert changes_of(ticket) == [("status", "open", "on hold")]


def test_the_system_acts_with_a_reason(ticket):
    with pytest.raises(ValueError, match="reason"):
        ticket.edit(by=None, changes={"priority": "low"})
    ticket.edit(by=None, changes={"priority": "low"}, reason="quiet hours")
    event = ticket.events.get(field="priority")
    assert (event.actor, event.actor_text, event.reason) == (None, "", "quiet hours")


@pytest.mark.parametrize("name", ["vera", "charlie"])
def test_it_is_refused_to_viewers_and_outsiders(ticket, name, request):
    with pytest.raises(PermissionDenied):
        ticket.edit(by=request.getfixturevalue(name), changes={"priority": "low"})
    assert changes_of(ticket) == []


def test_a_superuser_may(ticket, root):
    assert ticket.set_priority("low", by=root)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("subject", ""),
        ("subject", "x" * 201),
        ("status", "nonsense"),
        ("priority", ""),
        ("requester_email", "nope"),
        ("description", "\0"),
        ("due_at", datetime(2030, 1, 1)),
        ("team", None),
    ],
)
def test_it_refuses_bad_values_and_saves_none_of_the_others(ticket, bob, field, value):
    with pytest.raises(ValidationError) as refusal:
        ticket.edit(by=bob, changes={"tags": ["new"], field: value})
    assert list(refusal.value.message_dict) == [field]
    ticket.refresh_from_db()
    assert (ticket.tags, ticket.version) == (["fire"], 1)


def test_it_names_all_bad_fields_at_once(ticket, bob):
    with pytest.raises(ValidationError) as refusal:
        ticket.edit(by=bob, changes={"subject": "", "status": "x"})
    assert set(refusal.value.message_dict) == {"subject", "status"}


@pytest.mark.parametrize("field", ["creator", "version", "created_at", "nonsense"])
def test_it_refuses_what_is_not_for_people_to_change(ticket, bob, field):
    with pytest.raises(ValidationError, match="cannot be changed"):
        ticket.edit(by=bob, changes={field: 1})


def test_a_ticket_that_is_gone_does_not_exist(ticket, bob):
    Ticket.objects.filter(pk=ticket.pk).delete()
    with pytest.raises(Ticket.DoesNotExist):
        ticket.edit(by=bob, changes={"priority": "low"})


def test_a_failure_in_the_middle_leaves_nothing(ticket, bob, tomorrow, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("disk full")

    monkeypatch.setattr(Notification.objects.__class__, "notify", fail)
    with pytest.raises(RuntimeError):
        ticket.edit(by=bob, changes={"assignee": ticket.creator, "due_at": tomorrow})
    stored = Ticket.objects.get(pk=ticket.pk)
    assert (stored.version, stored.reminder_revision, stored.due_at) == (1, 0, None)
    assert ticket.assignee is None
    assert changes_of(ticket) == []


def test_a_batch_of_fields_needs_a_fixed_number_of_queries(
    ticket, bob, django_assert_max_num_queries
):
    changes = {
        "subject": "a",
        "description": "b",
        "priority": "low",
        "tags": [],
        "status": "pending",
    }
    with django_assert_max_num_queries(8):
        ticket.edit(by=bob, changes=changes)


# Times


def test_resolving_closing_and_reopening_keep_the_times_right(ticket, bob):
    assert ticket.resolve(by=bob)
    resolved = ticket.resolved_at
    assert resolved == ticket.updated_at and ticket.closed_at is None
    assert ticket.close(by=bob)
    assert (ticket.resolved_at, ticket.closed_at) == (resolved, ticket.updated_at)
    assert ticket.reopen(by=bob)
    assert (ticket.status, ticket.resolved_at, ticket.closed_at) == ("open", None, None)


def test_closing_directly_resolves_too_and_going_back_to_resolved_unclosed(ticket, bob):
    ticket.close(by=bob)
    closed = ticket.closed_at
    assert ticket.resolved_at == closed
    ticket.resolve(by=bob)
    assert (ticket.resolved_at, ticket.closed_at) == (closed, None)


def test_reopening_a_live_ticket_does_nothing(ticket, bob):
    ticket.set_status("pending", by=bob)
    assert not ticket.reopen(by=bob)
    assert ticket.status == "pending"


def test_verbs_say_whether_they_did_it(ticket, bob):
    assert ticket.assign(bob, by=bob) and not ticket.assign(bob, by=bob)
    assert ticket.set_tags("a, b", by=bob) and not ticket.set_tags(["a", "b"], by=bob)
    assert ticket.set_priority("high", by=bob) and not ticket.set_priority("high", by=bob)
    assert ticket.close(by=bob) and not ticket.close(by=bob)


# Assignee and team


def test_it_refuses_an_assignee_who_cannot_work_the_team(ticket, bob, vera, charlie):
    for person in (vera, charlie):
        with pytest.raises(ValidationError) as refusal:
            ticket.assign(person, by=bob)
        assert list(refusal.value.message_dict) == ["assignee"]
    bob.is_active = False
    bob.save()
    with pytest.raises(ValidationError):
        ticket.assign(bob, by=ticket.creator)


def test_an_assignee_who_left_meanwhile_does_not_stop_other_changes(ticket, bob, alice, support):
    ticket.assign(bob, by=alice)
    support.memberships.filter(user=bob).delete()
    edit = ticket.edit(by=alice, changes={"assignee": bob, "priority": "low"})
    assert edit.saved == {"priority": "low"}


def test_the_new_assignee_is_told_once_and_never_by_themselves(ticket, bob, alice):
    ticket.assign(bob, by=bob)
    assert not Notification.objects.exists()
    ticket.assign(alice, by=bob)
    told = Notification.objects.get()
    assert (told.user, told.kind, told.text) == (alice, "assigned", "Printer")
    ticket.edit(by=bob, changes={"assignee": alice, "priority": "low"})
    assert Notification.objects.count() == 1


def test_moving_needs_rights_in_both_teams(ticket, bob, charlie, billing, root):
    for person in (bob, charlie):
        with pytest.raises(PermissionDenied):
            ticket.edit(by=person, changes={"team": billing})
    assert ticket.edit(by=root, changes={"team": billing}).saved == {"team": billing}
    assert changes_of(ticket) == [("team", "Support", "Billing")]


def test_moving_leaves_behind_an_assignee_who_is_not_in_the_new_team(ticket, bob, alice, billing):
    billing.memberships.create(user=alice, role="agent")
    ticket.assign(bob, by=alice)
    edit = ticket.edit(by=alice, changes={"team": billing, "assignee": bob})
    assert edit.saved == {"team": billing, "assignee": None}
    event = ticket.events.get(version=3, field="assignee")
    assert (event.old_text, event.new_text, event.actor) == ("Bob Berg", "", alice)
    assert event.reason_display == "not in the new team"


def test_moving_keeps_an_assignee_who_is_in_both(ticket, alice, billing):
    billing.memberships.create(user=alice, role="agent")
    ticket.assign(alice, by=alice)
    ticket.edit(by=alice, changes={"team": billing})
    assert (ticket.team, ticket.assignee) == (billing, alice)


def test_moving_to_a_new_assignee_of_the_new_team(ticket, alice, charlie, billing):
    billing.memberships.create(user=alice, role="agent")
    ticket.edit(by=alice, changes={"team": billing, "assignee": charlie})
    assert ticket.assignee == charlie
    assert Notification.objects.get().user == charlie


def test_creators_who_may_no_longer_see_a_moved_ticket_are_not_told_of_it(
    ticket, bob, charlie, billing, root
):
    ticket.edit(by=root, changes={"team": billing})
    ticket.comment(by=charlie, body="Hello")
    assert not Notification.objects.exists()


def test_versions_in_history_have_no_gaps(ticket, bob):
    """Merging relies on it: an event carries the version after its change."""
    for priority in ("low", "high", "urgent"):
        ticket.set_priority(priority, by=bob)
    versions = TicketEvent.objects.filter(ticket=ticket).order_by("id")
    assert list(versions.values_list("version", flat=True)) == [1, 2, 3, 4]


@pytest.mark.django_db(transaction=True)
def test_two_who_take_the_ticket_at_once_leave_one_assignee_and_true_history(
    ticket, alice, bob, other, wait_until
):
    from django.db import transaction

    with transaction.atomic():
        ticket.assign(alice, by=alice)
        second = other(lambda: Ticket.objects.get(pk=ticket.pk).assign(bob, by=bob))
        wait_until(second.is_blocked, "bob waits for alice's commit")
    assert second.result() is True
    assert changes_of(ticket) == [
        ("assignee", "", "Alice Ames"),
        ("assignee", "Alice Ames", "Bob Berg"),
    ]
    assert Ticket.objects.get(pk=ticket.pk).version == 3
    assert connection.in_atomic_block is False


@pytest.mark.django_db(transaction=True)
def test_the_same_person_clicking_twice_takes_it_once(ticket, bob, other, wait_until):
    from django.db import transaction

    with transaction.atomic():
        assert ticket.assign(bob, by=bob) is True
        second = other(lambda: Ticket.objects.get(pk=ticket.pk).assign(bob, by=bob))
        wait_until(second.is_blocked, "the second click waits for the first")
    assert second.result() is False
    assert changes_of(ticket) == [("assignee", "", "Bob Berg")]
