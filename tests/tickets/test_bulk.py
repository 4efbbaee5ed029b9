"""Changing many tickets: what comes of each, and what holds when an attempt ends half-way."""

import pytest
from django.core.exceptions import ValidationError

from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.recovery import recover_expired_leases
from tasks.worker import run_job
from tickets.models import BulkEdit, BulkTicket, Membership, Notification, Ticket, TicketEvent
from tickets.models.bulk_edit import MAX_BULK

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def three(alice, support):
    return [Ticket.objects.open(by=alice, team=support, subject=f"Lift {n}") for n in range(3)]


def request(by, tickets, changes=None, **tags):
    seen = {ticket.pk: ticket.version for ticket in tickets}
    return BulkEdit.objects.request(by, seen, changes or {}, **tags)


def outcomes(bulk_edit):
    return dict(bulk_edit.tickets.values_list("number", "outcome"))


def run(bulk_edit, run=0):
    status = run_job(bulk_edit.pk, run)
    return status, [outcome for _number, outcome in sorted(outcomes(bulk_edit).items())]


def history(ticket):
    events = ticket.events.filter(kind="changed").order_by("pk")
    return list(events.values_list("actor__username", "field", "old_value", "new_value", "version"))


def test_history_and_notifications_are_those_of_one_edit_each(bob, alice, three, tomorrow):
    changes = {"assignee": alice, "status": "pending", "priority": "high", "due_at": tomorrow}
    alone = Ticket.objects.open(by=alice, team=three[0].team, subject="Alone")
    alone.edit(by=bob, changes=changes | {"tags": ["vpn"]})
    assert run(request(bob, three, changes, add_tags=["vpn"])) == (
        TaskStatus.COMPLETED,
        ["changed"] * 3,
    )
    for ticket in three:
        assert sorted(history(ticket), key=str) == sorted(history(alone), key=str)
        assert Notification.objects.filter(user=alice, ticket=ticket).count() == 1
        assert ticket.background_tasks.filter(kind="REMINDER", status="WAITING").count() == 1
    assert not Notification.objects.filter(user=bob).exists()


def test_who_assigns_to_themselves_is_not_told(bob, three):
    run(request(bob, three, {"assignee": bob}))
    assert Ticket.objects.filter(assignee=bob).count() == 3
    assert not Notification.objects.exists()


def test_each_ticket_is_told_what_came_of_it(bob, alice, charlie, three, support, billing):
    foreign = Ticket.objects.open(by=charlie, team=billing, subject="Secret")
    readable = Ticket.objects.open(by=charlie, team=billing, subject="Read me")
    third = type(billing).objects.create(name="Third", slug="third")
    Ticket.objects.filter(pk=readable.pk).update(team=third)
    Membership.objects.create(team=third, user=bob, role="viewer")
    three[1].set_priority("urgent", by=alice)
    bulk_edit = BulkEdit.objects.request(
        bob,
        {
            three[0].pk: 1,
            three[1].pk: 2,
            three[2].pk: 999,
            foreign.pk: 1,
            readable.pk: 1,
            10**15: 1,
        },
        {"priority": "urgent"},
    )
    run(bulk_edit)
    assert outcomes(bulk_edit) == {
        three[0].pk: "changed",
        three[1].pk: "unchanged",
        three[2].pk: "refused",  # no such version: a damaged form
        foreign.pk: "not_found",
        readable.pk: "no_right",
        10**15: "not_found",
    }
    assert not Ticket.objects.filter(pk__in=[foreign.pk, readable.pk], priority="urgent").exists()


def test_a_field_that_another_changed_meanwhile_is_left_and_told(bob, alice, three):
    bulk_edit = request(bob, three[:2], {"priority": "low", "status": "pending"})
    three[0].set_priority("urgent", by=alice)
    three[1].edit(by=alice, changes={"priority": "urgent", "status": "closed"})
    run(bulk_edit)
    assert outcomes(bulk_edit) == {three[0].pk: "partly", three[1].pk: "conflict"}
    three[0].refresh_from_db()
    assert (three[0].priority, three[0].status) == ("urgent", "pending")
    assert "urgent" in bulk_edit.tickets.get(number=three[0].pk).reason


def test_tags_are_added_and_removed_beside_those_set_meanwhile(bob, alice, three):
    three[0].set_tags(["Fire", "old"], by=alice)
    bulk_edit = request(bob, three[:1], add_tags=["vpn", "old"], remove_tags=["FIRE"])
    three[0].set_tags(["Fire", "old", "new"], by=alice)
    assert run(bulk_edit)[1] == ["changed"]
    three[0].refresh_from_db()
    assert three[0].tags == ["old", "new", "vpn"]


def test_an_assignee_of_another_team_is_refused_with_the_reason(root, charlie, three):
    bulk_edit = request(root, three[:1], {"assignee": charlie})
    run(bulk_edit)
    row = bulk_edit.tickets.get()
    assert row.outcome == "refused"
    assert "Charlie Chen cannot work tickets of the team Support" in row.reason


def test_rights_are_those_of_the_moment_it_runs(bob, three):
    bulk_edit = request(bob, three, {"priority": "high"})
    bob.memberships.all().delete()
    assert run(bulk_edit) == (TaskStatus.COMPLETED, ["not_found"] * 3)
    assert not TicketEvent.objects.filter(field="priority").exists()


@pytest.mark.parametrize(
    ("tickets", "changes", "complaint"),
    [
        ({}, {"priority": "high"}, "at least one ticket"),
        ({1: 1}, {}, "at least one change"),
        ({1: 1}, {"subject": "x"}, "cannot be changed for many"),
        ({1: 1}, {"priority": "purple"}, "not one of the choices"),
        (dict.fromkeys(range(1, MAX_BULK + 2), 1), {"priority": "high"}, "At most 1000"),
    ],
)
def test_what_cannot_be_asked_for_leaves_no_task(bob, tickets, changes, complaint):
    with pytest.raises(ValidationError, match=complaint):
        BulkEdit.objects.request(bob, tickets, changes)
    assert not BackgroundTask.objects.exists()


class Killed(BaseException):
    """As SIGKILL: nothing after it is done."""


def test_a_worker_killed_half_way_leaves_none_twice_and_none_out(bob, three, monkeypatch):
    bulk_edit = request(bob, three, {"priority": "high"})
    change, seen = Ticket.change_among_many, []

    def killed_at_the_second(ticket, **kwargs):
        edit = change(ticket, **kwargs)
        seen.append(ticket)
        if len(seen) == 2:
            raise Killed  # it is changed, and nothing of that is committed
        return edit

    lease = Lease.claim(bulk_edit.pk, 0)
    with monkeypatch.context() as patch:
        patch.setattr(Ticket, "change_among_many", killed_at_the_second)
        with pytest.raises(Killed):
            lease.kind.handler(lease.task, lease)
    assert sorted(outcomes(bulk_edit).values()) == ["changed", "waiting", "waiting"]
    assert [len(history(ticket)) for ticket in seen] == [1, 0]
    expire_lease_and_recover(bulk_edit)
    with pytest.raises(LeaseLost):  # the first, had it only been slow, can do nothing more
        lease.kind.handler(lease.task, lease)
    assert run(bulk_edit) == (TaskStatus.COMPLETED, ["changed"] * 3)
    assert [len(history(ticket)) for ticket in three] == [1, 1, 1]


def expire_lease_and_recover(bulk_edit):
    BackgroundTask.objects.filter(pk=bulk_edit.pk).update(updated_at="2020-01-01T00:00Z")
    assert recover_expired_leases(5) == (1, 0)
    BackgroundTask.objects.filter(pk=bulk_edit.pk).update(run_at="2020-01-01T00:00Z")


def test_two_executions_at_once_change_a_ticket_once(bob, three, actor):
    bulk_edit = request(bob, three[:1], {"priority": "high"})
    args = (bulk_edit, three[0].pk, bulk_edit.values())
    first, second = actor("first"), actor("second")
    first.begin()
    assert first.do(BulkTicket.objects.settle, *args)
    waiting = second.start(BulkTicket.objects.settle, *args)
    second.wait_until_blocked()
    first.commit()
    assert waiting.result(30) is False
    assert len(history(three[0])) == 1


def test_opposite_bulk_edits_at_once_leave_both_in_the_history(bob, alice, three, actor):
    high = BulkEdit.objects.request(alice, {three[0].pk: 0}, {"priority": "high"})
    low = BulkEdit.objects.request(bob, {three[0].pk: 0}, {"priority": "low"})
    first, second = actor("first"), actor("second")
    first.begin()
    first.do(BulkTicket.objects.settle, high, three[0].pk, high.values())
    waiting = second.start(BulkTicket.objects.settle, low, three[0].pk, low.values())
    second.wait_until_blocked()
    first.commit()
    assert waiting.result(30)
    assert history(three[0]) == [
        ("alice", "priority", "normal", "high", 2),
        ("bob", "priority", "high", "low", 3),
    ]
    # And with versions the second is told, and does not undo what it never saw.
    late = BulkEdit.objects.request(bob, {three[0].pk: 2}, {"priority": "urgent"})
    assert run(late) == (TaskStatus.COMPLETED, ["conflict"])


def test_one_tickets_failure_does_not_undo_the_others(bob, three, monkeypatch):
    bulk_edit = request(bob, three, {"priority": "high"})
    edit = Ticket.edit

    def broken(ticket, **kwargs):
        if ticket.pk == three[1].pk:
            raise RuntimeError("the second is broken")
        return edit(ticket, **kwargs)

    monkeypatch.setattr(Ticket, "edit", broken)
    assert run(bulk_edit) == (TaskStatus.WAITING, ["changed", "waiting", "changed"])
    monkeypatch.undo()
    BackgroundTask.objects.filter(pk=bulk_edit.pk).update(run_at="2020-01-01T00:00Z")
    assert run(bulk_edit) == (TaskStatus.COMPLETED, ["changed"] * 3)


def test_a_cancel_stops_it_before_the_next_ticket_and_it_can_go_on(bob, three, monkeypatch):
    bulk_edit = request(bob, three, {"priority": "high"})
    settle = BulkTicket.objects.settle

    def settled_then_cancelled(self, *args):
        settle(*args)
        BulkEdit.objects.get(pk=bulk_edit.pk).cancel(by=bob)

    with monkeypatch.context() as patch:
        patch.setattr(type(BulkTicket.objects), "settle", settled_then_cancelled)
        run_job(bulk_edit.pk, 0)
    assert sorted(outcomes(bulk_edit).values()) == ["changed", "waiting", "waiting"]
    bulk_edit = BulkEdit.objects.get(pk=bulk_edit.pk)
    assert bulk_edit.task.status == TaskStatus.CANCELLED
    assert bulk_edit.retry(by=bob)
    assert run(bulk_edit, 1) == (TaskStatus.COMPLETED, ["changed"] * 3)


def test_an_assignee_who_is_gone_fails_it_in_words(bob, alice, three):
    bulk_edit = request(bob, three, {"assignee": alice})
    Ticket.objects.update(creator=None)
    alice.delete()
    assert run(bulk_edit) == (TaskStatus.FAILED, ["waiting"] * 3)
    assert "does not exist any more" in BackgroundTask.objects.get(pk=bulk_edit.pk).last_error
