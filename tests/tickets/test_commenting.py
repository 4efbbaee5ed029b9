"""Comments: replies and internal notes."""

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from tickets.models import Comment, Notification, Ticket, WrittenMeanwhile


def told(kind="commented"):
    notifications = Notification.objects.filter(kind=kind).order_by("user__username")
    return list(notifications.values_list("user__username", flat=True))


def test_a_reply_is_stored_and_is_history(ticket, bob):
    comment = ticket.comment(by=bob, body="  We are on it.\n")
    assert (comment.author, comment.author_text, comment.is_public) == (bob, "Bob Berg", True)
    assert comment.body == "We are on it."
    event = ticket.events.get(kind="commented")
    assert (event.actor, event.new_text) == (bob, "We are on it.")
    assert event.new_value == {"comment": comment.pk, "is_public": True}


def test_the_first_reply_is_the_first_response(ticket, bob):
    ticket.comment(by=bob, body="internal", is_public=False)
    assert ticket.first_responded_at is None
    first = ticket.comment(by=bob, body="public")
    assert ticket.first_responded_at == first.created_at
    ticket.comment(by=bob, body="second")
    stored = Ticket.objects.get(pk=ticket.pk)
    assert stored.first_responded_at == first.created_at
    assert stored.updated_at > first.created_at


def test_it_leaves_version_and_fields_alone(ticket, bob):
    ticket.comment(by=bob, body="Hello")
    assert (ticket.version, ticket.status) == (1, "open")


@pytest.mark.parametrize("is_public", [True, False])
def test_assignee_and_creator_are_told_but_not_the_author(ticket, alice, bob, root, is_public):
    ticket.assign(bob, by=bob)
    ticket.comment(by=root, body="Hello", is_public=is_public)
    assert told() == ["alice", "bob"]
    ticket.comment(by=bob, body="Hi", is_public=is_public)
    assert told() == ["alice", "alice", "bob"]


def test_who_may_not_see_the_ticket_is_not_told(ticket, alice, bob, root, support):
    ticket.assign(bob, by=bob)
    support.memberships.filter(user=alice).delete()
    bob.is_active = False
    bob.save()
    ticket.comment(by=root, body="Hello")
    assert told() == []


def test_a_creator_who_only_views_now_is_told_of_internal_notes_too(ticket, alice, bob, support):
    support.memberships.filter(user=alice).update(role="viewer")
    ticket.comment(by=bob, body="note", is_public=False)
    assert told() == ["alice"]


@pytest.mark.parametrize("name", ["vera", "charlie"])
def test_it_is_refused_to_viewers_and_outsiders(ticket, name, request):
    with pytest.raises(PermissionDenied):
        ticket.comment(by=request.getfixturevalue(name), body="Hello")
    assert not Comment.objects.exists()


@pytest.mark.parametrize("body", ["", "  \n ", "a\0b", "\ud83d", None])
def test_it_refuses_what_is_empty_or_cannot_be_stored(ticket, bob, body):
    with pytest.raises(ValidationError) as refusal:
        ticket.comment(by=bob, body=body)
    assert list(refusal.value.message_dict) == ["body"]
    assert not Comment.objects.exists()


def test_a_reply_may_resolve_the_ticket(ticket, bob):
    ticket.comment(by=bob, body="Done", then="resolved")
    assert (ticket.status, ticket.version) == ("resolved", 2)
    assert ticket.resolved_at >= ticket.first_responded_at
    assert Ticket.objects.get(pk=ticket.pk).status == "resolved"


@pytest.mark.parametrize("then", ["pending", "melted"])
def test_it_does_nothing_else_to_the_ticket(ticket, bob, then):
    with pytest.raises(ValidationError) as refusal:
        ticket.comment(by=bob, body="Done", then=then)
    assert list(refusal.value.message_dict) == ["status"]
    assert not Comment.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_first_replies_at_once_keep_the_first(ticket, alice, bob, other, wait_until):
    with transaction.atomic():
        first = ticket.comment(by=alice, body="first")
        second = other(lambda: Ticket.objects.get(pk=ticket.pk).comment(by=bob, body="second"))
        wait_until(second.is_blocked, "bob's comment waits for alice's")
    second.result()
    assert Ticket.objects.get(pk=ticket.pk).first_responded_at == first.created_at
    assert ticket.comments.count() == 2


def test_what_another_wrote_is_read_first(ticket, alice, bob):
    seen = ticket.comment(by=alice, body="old").pk
    notes = [ticket.comment(by=alice, body=body, is_public=False) for body in ("new", "newer")]
    with pytest.raises(WrittenMeanwhile) as meanwhile:
        ticket.comment(by=bob, body="Done", then="resolved", seen=seen)
    assert meanwhile.value.comments == notes
    stored = Ticket.objects.get(pk=ticket.pk)
    assert (stored.status, stored.comments.count()) == ("open", 3)
    ticket.comment(by=bob, body="Done", then="resolved", seen=notes[-1].pk)
    assert Ticket.objects.get(pk=ticket.pk).status == "resolved"


def test_ones_own_comment_from_another_tab_is_in_nobodys_way(ticket, bob):
    ticket.comment(by=bob, body="first", seen=0)
    ticket.comment(by=bob, body="second", seen=0)
    assert ticket.comments.count() == 2


def test_a_comment_of_somebody_deleted_is_read_first_too(ticket, alice, bob):
    ticket.comment(by=alice, body="Wait")
    ticket.comments.update(author=None)
    with pytest.raises(WrittenMeanwhile):
        ticket.comment(by=bob, body="Done", seen=0)


@pytest.mark.django_db(transaction=True)
def test_of_two_replies_at_once_the_second_has_to_read_the_first(
    ticket, alice, bob, other, wait_until
):
    with transaction.atomic():
        first = ticket.comment(by=alice, body="first", seen=0)
        second = other(
            lambda: Ticket.objects.get(pk=ticket.pk).comment(by=bob, body="second", seen=0)
        )
        wait_until(second.is_blocked, "bob's comment waits for alice's")
    with pytest.raises(WrittenMeanwhile) as meanwhile:
        second.result()
    assert meanwhile.value.comments == [first]
    assert [comment.body for comment in ticket.comments.all()] == ["first"]
