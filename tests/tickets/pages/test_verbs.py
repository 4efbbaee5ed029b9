"""What is done on a ticket's page."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from tickets.access import workable_ticket_or_404
from tickets.models import Comment, Ticket
from tickets.views import edit, verbs

HTMX = {"HX-Request": "true", "HX-Target": "ticket"}


@pytest.fixture
def as_bob(client, bob):
    client.force_login(bob)
    return bob


def test_each_verb_works_without_a_script(act, ticket, as_bob, alice):
    steps = [
        ("assign", {"assignee": alice.pk}, "assignee", alice),
        ("assign", {"assignee": "me"}, "assignee", as_bob),
        ("assign", {"assignee": ""}, "assignee", None),
        ("status", {"status": "pending"}, "status", "pending"),
        ("priority", {"priority": "urgent"}, "priority", "urgent"),
        ("tags", {"tags": "a, b"}, "tags", ["a", "b"]),
        ("resolve", {}, "status", "resolved"),
        ("close", {}, "status", "closed"),
        ("reopen", {}, "status", "open"),
    ]
    for verb, fields, name, value in steps:
        answer = act(verb, **fields)
        ticket.refresh_from_db()
        assert (answer.status_code, answer.url) == (302, f"/tickets/{ticket.pk}/"), verb
        assert getattr(ticket, name) == value, verb


def test_due_is_set_and_cleared(act, ticket, as_bob):
    as_bob.time_zone = "Asia/Shanghai"
    as_bob.save()
    act("due", due_at="2031-07-01T17:00")
    ticket.refresh_from_db()
    assert ticket.due_at.isoformat() == "2031-07-01T09:00:00+00:00"
    act("due", due_at="")
    ticket.refresh_from_db()
    assert ticket.due_at is None


def test_a_preset_wins_over_the_field_beside_it(act, ticket, as_bob):
    act("due", due_at=["2031-01-01T10:00", "2031-07-01T17:00"])
    ticket.refresh_from_db()
    assert ticket.due_at.month == 7


def test_htmx_gets_the_new_content_and_hears_what_was_done(act, ticket, as_bob):
    answer = act("priority", priority="urgent", version=ticket.version, headers=HTMX)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "<html" not in page
    assert 'id="ticket"' in page
    assert answer.headers["HX-Trigger"] == '{"say": "The priority is changed."}'
    assert "hx-preserve" in page  # of the reply being written


def test_a_reply_and_an_internal_note(act, ticket, as_bob):
    act("comment", body="Hello Mara", is_public="1")
    act("comment", body="Between us", is_public="0")
    act("comment", body="Who can tell")
    assert list(ticket.comments.values_list("body", "is_public")) == [
        ("Hello Mara", True),
        ("Between us", False),
        ("Who can tell", False),  # what does not say it is a reply is not one
    ]


def test_a_sent_comment_leaves_the_form_empty(act, ticket, as_bob):
    page = act("comment", body="Hello", is_public="1", headers=HTMX).content.decode()
    assert "hx-preserve" not in page


def test_reply_and_resolve(act, ticket, as_bob):
    act("comment", body="Done", is_public="1", then="resolved")
    ticket.refresh_from_db()
    assert ticket.status == "resolved"


def test_a_comment_sent_twice_is_one(act, ticket, as_bob):
    for _click in range(2):
        assert act("comment", body="Hello", is_public="1", submission="s1").status_code == 302
    assert Comment.objects.count() == 1


def test_what_was_added_to_a_reply_whose_answer_got_lost_is_not(act, ticket, as_bob):
    act("comment", body="Hello", is_public="1", submission="s1")  # and the answer never came
    act("comment", body="Hello Mara", is_public="1", submission="s1")
    assert list(ticket.comments.values_list("body", flat=True)) == ["Hello", "Hello Mara"]


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(
    ("verb", "fields", "complaint"),
    [
        ("comment", {"body": "  ", "is_public": "1"}, "This field is required."),
        ("status", {"status": "melted"}, "melted"),
        ("status", {}, "Status"),
        ("priority", {"priority": ""}, "Priority"),
        ("assign", {"assignee": "999"}, "not an agent"),
        ("assign", {"assignee": "bob"}, "not an agent"),
        ("due", {"due_at": "soon"}, "“soon” is not a date"),
        ("tags", {"tags": "x" * 51}, "At most 50"),
        ("tags", {"tags": "a", "version": "x"}, "<p>This version of the ticket does not exist"),
    ],
)
def test_bad_input_is_explained(act, ticket, as_bob, verb, fields, complaint, headers):
    answer = act(verb, **fields, headers=headers)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert complaint in page
    assert ("<html" in page) is not bool(headers)
    ticket.refresh_from_db()
    assert ticket.version == 1


def test_a_refused_note_stays_a_note_with_its_text(act, ticket, as_bob):
    answer = act("comment", body="secret\0plan", is_public="0")
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "secret" in page
    assert answer.context["is_note"]


def test_when_another_was_faster_both_values_are_shown(act, ticket, as_bob, alice):
    seen = ticket.version
    ticket.set_status("on_hold", by=alice)
    answer = act("status", status="pending", version=seen)
    page = answer.content.decode()
    ticket.refresh_from_db()
    assert answer.status_code == 409
    assert ticket.status == "on_hold"
    assert "<dd>pending</dd>" in page
    assert "<dd>on hold</dd>" in page
    conflict = answer.context["conflict"]
    again = {conflict["name"]: conflict["posted"], "version": ticket.version}
    assert act(conflict["verb"], **again).status_code == 302
    ticket.refresh_from_db()
    assert ticket.status == "pending"


@pytest.mark.parametrize(
    ("verb", "name", "mine", "theirs"),
    [
        ("due", "due_at", "2031-07-01T17:00", timezone.now() + timedelta(days=3)),
        ("tags", "tags", "mine, too", ["theirs"]),
        ("assign", "assignee", "me", "alice"),
    ],
)
def test_every_kind_of_conflict_can_be_decided(
    act, ticket, as_bob, alice, verb, name, mine, theirs
):
    seen = ticket.version
    ticket.edit(by=alice, changes={name: alice if theirs == "alice" else theirs})
    conflict = act(verb, **{name: mine, "version": seen}).context["conflict"]
    again = {conflict["name"]: conflict["posted"], "version": ticket.version}
    assert act(conflict["verb"], **again).status_code == 302
    wanted = {"due_at": "2031-07-01", "tags": "mine", "assignee": "Bob"}[name]
    ticket.refresh_from_db()
    value = ticket.assignee.display_name if name == "assignee" else getattr(ticket, name)
    assert wanted in str(value)


def test_other_fields_do_not_conflict(act, ticket, as_bob, alice):
    seen = ticket.version
    ticket.set_priority("urgent", by=alice)
    assert act("status", status="pending", version=seen).status_code == 302


def test_an_unknown_verb_is_not_found(act, ticket, as_bob):
    assert act("explode").status_code == 404


@pytest.mark.parametrize("verb", ["comment", "status", "due", "resolve"])
def test_a_viewer_may_not(client, act, ticket, vera, charlie, verb):
    fields = {"body": "x", "status": "closed", "due_at": ""}
    client.force_login(vera)
    assert act(verb, **fields).status_code == 403
    client.force_login(charlie)
    assert act(verb, **fields).status_code == 404
    ticket.refresh_from_db()
    assert ticket.version == 1
    assert not ticket.comments.exists()


@pytest.mark.parametrize("verb", ["comment", "status", "edit"])
def test_a_ticket_moved_out_of_sight_this_moment_is_not_there(
    act, ticket, as_bob, root, billing, monkeypatch, verb
):
    def moved_right_after(user, pk):
        found = workable_ticket_or_404(user, pk)
        Ticket.objects.get(pk=pk).edit(by=root, changes={"team": billing})
        return found

    page = edit if verb == "edit" else verbs
    monkeypatch.setattr(page, "workable_ticket_or_404", moved_right_after)
    fields = {"subject": "x", "team": ticket.team_id, "priority": "low"}
    assert act(verb, body="x", status="closed", **fields).status_code == 404


def last_seen(page):
    return re.search(r'name="seen" value="(\d+)" form="composer"', page)[1]


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(("is_public", "checked"), [("1", "1"), ("0", "0")])
def test_a_reply_that_came_meanwhile_is_shown_before_mine_is_sent(
    act, client, ticket, as_bob, alice, headers, is_public, checked
):
    seen = last_seen(client.get(f"/tickets/{ticket.pk}/").content.decode())
    theirs = ticket.comment(by=alice, body="They <called> back")
    mine = {"body": "Anybody there?", "is_public": is_public, "submission": "s1"}
    answer = act("comment", **mine, seen=seen, headers=headers)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert f'href="#comment-{theirs.pk}">Alice' in page
    assert f'id="comment-{theirs.pk}"' in page and "They &lt;called&gt; back" in page
    assert ">Anybody there?</textarea>" in page
    assert re.search(rf'name="is_public" value="{checked}"[^>]* checked>', page)
    assert Comment.objects.count() == 1
    act("comment", **mine, seen=last_seen(page), headers=headers)
    assert [each.body for each in ticket.comments.all()] == ["They <called> back", "Anybody there?"]


def test_a_slow_network_does_not_make_me_read_my_own_success(act, ticket, as_bob, alice):
    mine = {"body": "Hello", "is_public": "1", "submission": "s1", "seen": "0"}
    act("comment", **mine)  # and the answer never came
    ticket.comment(by=alice, body="Thanks")
    assert act("comment", **mine).status_code == 302
    assert [each.body for each in ticket.comments.all()] == ["Hello", "Thanks"]


@pytest.mark.parametrize("seen", ["", "x", "-1", "9" * 40, "²"])
def test_a_program_that_says_nothing_sensible_of_what_it_saw_is_not_stopped(
    act, ticket, as_bob, alice, seen
):
    ticket.comment(by=alice, body="Hello")
    assert act("comment", body="Hi", is_public="1", seen=seen).status_code == 302


def test_viewers_have_nothing_to_send(client, ticket, vera):
    client.force_login(vera)
    assert 'name="seen"' not in client.get(f"/tickets/{ticket.pk}/").content.decode()
