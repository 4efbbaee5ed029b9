"""What a person was told, and the bell."""

import re

import pytest

from tickets.models import Notification


@pytest.fixture
def tell(alice, ticket):
    """``tell(cause, **fields)``: notifies alice."""

    def notify(cause="c1", **fields):
        fields = {"kind": "assigned", "ticket": ticket, "text": ticket.subject} | fields
        Notification.objects.notify([alice], cause=cause, **fields)
        return Notification.objects.get(cause=cause)

    return notify


def test_sentences_are_made_for_the_reader(client, alice, tell):
    tell("a", kind="assigned")
    tell("b", kind="reminder")
    tell("c", kind="commented")
    tell("d", kind="export_ready", ticket=None, text="12840", url="/exports/1/")
    tell("e", kind="export_ready", ticket=None, text="1", url="/exports/2/")
    client.force_login(alice)
    page = client.get("/notifications/").content.decode()
    for sentence in (
        "“Broken printer” was assigned to you",
        "Reminder: “Broken printer” is due",
        "New comment on “Broken printer”",
        "Your export is ready: 12,840 rows",
        "Your export is ready: 1 row<",
    ):
        assert sentence in page


def test_the_empty_page_says_what_will_be_here(client, alice):
    client.force_login(alice)
    assert b"No notifications yet" in client.get("/notifications/").content
    assert b"Nothing unread" in client.get("/notifications/?unread=1").content


def test_opening_one_marks_it_read_and_goes_there(client, alice, ticket, tell):
    notice, other = tell("a"), tell("b")
    client.force_login(alice)
    answer = client.post(f"/notifications/{notice.pk}/open/")
    assert answer.url == f"/tickets/{ticket.pk}/"
    notice.refresh_from_db()
    other.refresh_from_db()
    assert notice.read_at
    assert other.read_at is None


def test_a_link_of_its_own_is_followed_on_this_site_alone(client, alice, tell):
    client.force_login(alice)
    inside = tell("a", kind="export_ready", ticket=None, url="/exports/5/")
    assert client.post(f"/notifications/{inside.pk}/open/").url == "/exports/5/"
    outside = tell("b", kind="export_ready", ticket=None, url="https://evil.example/")
    assert client.post(f"/notifications/{outside.pk}/open/").url == "/notifications/"


def test_one_and_all_are_marked_read(client, alice, tell):
    notice = tell("a")
    tell("b")
    client.force_login(alice)
    client.post(f"/notifications/{notice.pk}/read/")
    assert Notification.objects.unread().count() == 1
    client.post("/notifications/read/")
    assert Notification.objects.unread().count() == 0


def test_marking_one_returns_to_where_one_was(client, alice, tell):
    client.force_login(alice)
    notice = tell("a")
    back = client.post(f"/notifications/{notice.pk}/read/", {"next": "/notifications/?unread=1"})
    assert back.url == "/notifications/?unread=1"
    away = client.post(f"/notifications/{notice.pk}/read/", {"next": "https://evil.example/"})
    assert away.url == "/notifications/"


def test_anothers_are_not_there(client, bob, tell):
    notice = tell("a")
    client.force_login(bob)
    assert client.post(f"/notifications/{notice.pk}/open/").status_code == 404
    assert client.post(f"/notifications/{notice.pk}/read/").status_code == 404
    client.post("/notifications/read/")
    assert Notification.objects.unread().count() == 1


def test_those_of_tickets_one_lost_sight_of_are_gone(client, alice, tell):
    tell("a")
    alice.memberships.all().delete()
    client.force_login(alice)
    assert b"Broken printer" not in client.get("/notifications/").content


def mark(page):
    return re.search(r"mark=([\d-]+)", page).group(1)


def test_the_bell_changes_when_there_is_something_new(client, alice, tell):
    client.force_login(alice)
    known = mark(client.get("/tickets/").content.decode())
    assert client.get(f"/notifications/badge/?mark={known}").status_code == 204
    tell("a")
    bell = client.get(f"/notifications/badge/?mark={known}").content.decode()
    assert "1 unread notification" in bell
    assert "data-announcement" in bell
    assert client.get(f"/notifications/badge/?mark={mark(bell)}").status_code == 204


def test_the_bell_is_silent_when_something_was_read(client, alice, tell):
    tell("a")
    notice = tell("b")
    client.force_login(alice)
    known = mark(client.get("/tickets/").content.decode())
    client.post(f"/notifications/{notice.pk}/read/")
    bell = client.get(f"/notifications/badge/?mark={known}").content.decode()
    assert "1 unread notification" in bell
    assert "data-announcement" not in bell


@pytest.mark.parametrize("known", ["", "x", "1-x", "--", "%00"])
def test_an_odd_mark_is_no_fault(client, alice, known):
    client.force_login(alice)
    assert client.get(f"/notifications/badge/?mark={known}").status_code == 200


def test_many_are_99_plus(client, alice, tell):
    for n in range(101):
        tell(f"c{n}")
    client.force_login(alice)
    assert b"99+" in client.get("/tickets/").content


def test_the_bell_is_cheap(client, alice, tell, django_assert_num_queries):
    tell()
    client.force_login(alice)
    with django_assert_num_queries(3):  # session, person, unread
        client.get("/notifications/badge/?mark=0-0")


def test_the_number_of_queries_does_not_grow(client, alice, tell, django_assert_max_num_queries):
    tell()
    client.force_login(alice)
    with django_assert_max_num_queries(8) as few:
        client.get("/notifications/")
    for n in range(20):
        tell(f"more {n}")
    with django_assert_max_num_queries(len(few)):
        client.get("/notifications/")
