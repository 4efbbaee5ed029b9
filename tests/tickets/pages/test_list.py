"""The list of tickets."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from tickets.models import Ticket


def subjects(response):
    return [ticket.subject for ticket in response.context["page"]]


def test_it_shows_the_tickets_of_ones_teams_alone(client, make_ticket, alice, charlie):
    make_ticket("Printer on fire")
    client.force_login(alice)
    assert b"Printer on fire" in client.get("/tickets/").content
    client.force_login(charlie)
    answer = client.get("/tickets/").content
    assert b"Printer on fire" not in answer
    assert b"No tickets yet" in answer


def test_it_asks_strangers_to_log_in(client, db):
    answer = client.get("/tickets/?q=fire")
    assert answer.status_code == 302
    assert answer.url == "/accounts/login/?next=/tickets/%3Fq%3Dfire"


def test_it_filters_by_the_url(client, make_ticket, bob):
    make_ticket("Fire", priority="urgent", assignee=bob)
    make_ticket("Smoke", priority="low")
    client.force_login(bob)
    assert subjects(client.get("/tickets/?q=fire")) == ["Fire"]
    assert subjects(client.get("/tickets/?priority=low&status=open")) == ["Smoke"]
    assert subjects(client.get("/tickets/?assignee=me")) == ["Fire"]
    assert subjects(client.get("/tickets/?assignee=none")) == ["Smoke"]


def test_an_active_filter_can_be_taken_out_alone(client, make_ticket, bob):
    make_ticket("Fire")
    client.force_login(bob)
    answer = client.get("/tickets/?q=fire&priority=normal")
    without = {each["label"]: each["without"] for each in answer.context["active_filters"]}
    assert without == {"Search": "priority=normal", "Priority": "q=fire"}


def test_it_says_what_is_wrong_with_a_filter_and_shows_the_rest(client, make_ticket, bob):
    make_ticket("Fire")
    client.force_login(bob)
    answer = client.get("/tickets/?created_after=yesterday&status=melted&page=none&sort=colour")
    assert answer.status_code == 200
    assert "yesterday" in answer.content.decode()
    assert "melted" in answer.content.decode()
    assert subjects(answer) == ["Fire"]


@pytest.mark.parametrize(
    "query",
    ["q=%00", "q=%27%22%25_", "team=99999999999999999999", "page=-5", "tags=,,", "assignee=%F0"],
)
def test_odd_input_is_no_fault(client, make_ticket, bob, query):
    make_ticket("Fire")
    client.force_login(bob)
    assert client.get(f"/tickets/?{query}").status_code == 200


def test_it_sorts_by_a_click_on_a_column(client, make_ticket, bob):
    make_ticket("Later", due_at=timezone.now() + timedelta(days=9))
    make_ticket("Sooner", due_at=timezone.now() + timedelta(days=2))
    make_ticket("Never")
    client.force_login(bob)
    answer = client.get("/tickets/?sort=due")
    assert subjects(answer) == ["Sooner", "Later", "Never"]
    due = next(column for column in answer.context["columns"] if column["key"] == "due")
    assert due["direction"] == "ascending"
    assert due["query"] == "sort=-due"  # a second click turns it round


def test_pages_neither_repeat_nor_skip_a_ticket(client, make_ticket, bob):
    made = {make_ticket(f"Ticket {n}").pk for n in range(60)}
    client.force_login(bob)
    seen = [t.pk for n in (1, 2, 3) for t in client.get(f"/tickets/?page={n}").context["page"]]
    assert len(seen) == 60
    assert set(seen) == made


def test_quick_views_count_what_they_show(client, make_ticket, bob):
    now = timezone.now()
    make_ticket("mine", assignee=bob)
    make_ticket("overdue", due_at=now - timedelta(days=2))
    make_ticket("tonight", due_at=timezone.localtime().replace(hour=23, minute=59, second=59))
    make_ticket("done", status="closed", due_at=now - timedelta(days=2))
    make_ticket("waits", status="pending")
    long_ago = make_ticket("long ago", status="resolved")
    Ticket.objects.filter(pk=long_ago.pk).update(resolved_at=now - timedelta(days=8))
    client.force_login(bob)
    views = client.get("/tickets/").context["views"]
    assert {view["name"]: view["count"] for view in views} == {
        "open": 4, "mine": 1, "unassigned": 3, "overdue": 1, "today": 1, "waiting": 1,
        "resolved": 1, "all": 6
    }  # fmt: skip
    for view in views:
        shown = client.get(f"/tickets/?{view['query']}").context
        assert view["count"] == shown["total"] == len(shown["page"].tickets)
        assert [each["name"] for each in shown["views"] if each["is_here"]] == [view["name"]]


def test_it_marks_what_is_overdue_and_due_today(client, make_ticket, bob):
    noon = timezone.localtime().replace(hour=12, minute=0)
    make_ticket("late", due_at=noon - timedelta(days=2))
    make_ticket("far", due_at=noon + timedelta(days=2))
    make_ticket("done", due_at=noon - timedelta(days=2), status="resolved")
    client.force_login(bob)
    states = {t.subject: t.due_state for t in client.get("/tickets/").context["page"]}
    assert states == {"late": "late", "far": "later", "done": ""}


def test_the_export_button_carries_the_filter(client, bob):
    client.force_login(bob)
    answer = client.get("/tickets/?q=fire&priority=high&page=1").content
    assert b'href="/exports/new/?q=fire&amp;priority=high"' in answer


def test_htmx_gets_the_results_and_the_url_to_show(client, make_ticket, bob):
    make_ticket("Fire")
    client.force_login(bob)
    headers = {"HX-Request": "true", "HX-Target": "results"}
    answer = client.get("/tickets/?q=fire&priority=&created_after=", headers=headers)
    assert answer.content.lstrip().startswith(b'<div id="results">')
    assert b"<html" not in answer.content
    assert answer.headers["HX-Push-Url"] == "/tickets/?q=fire"
    assert answer.headers["HX-Trigger"] == '{"say": "1 ticket"}'


def test_a_page_restored_from_history_is_whole(client, make_ticket, bob):
    client.force_login(bob)
    headers = {
        "HX-Request": "true", "HX-Target": "results", "HX-History-Restore-Request": "true"
    }  # fmt: skip
    assert b"<html" in client.get("/tickets/", headers=headers).content


def test_the_number_of_queries_does_not_grow(
    client, make_ticket, bob, django_assert_max_num_queries
):
    make_ticket("One", assignee=bob, tags=["a"])
    client.force_login(bob)
    with django_assert_max_num_queries(12) as few:
        client.get("/tickets/")
    for n in range(24):
        make_ticket(f"Another {n}", assignee=bob, tags=["a", "b"])
    with django_assert_max_num_queries(len(few)):
        client.get("/tickets/")


def test_times_are_in_the_readers_zone(client, make_ticket, bob):
    make_ticket(due_at=datetime(2031, 7, 1, 22, 30, tzinfo=UTC))
    bob.time_zone = "Asia/Shanghai"
    bob.save()
    client.force_login(bob)
    answer = client.get("/tickets/").content.decode()
    assert 'title="July 2, 2031, 6:30 a.m. CST"' in answer
    assert 'datetime="2031-07-01T22:30:00+00:00"' in answer
