"""Who sees the operations page, and that its numbers are the ledger's."""

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.db.models.functions import Now

from tasks.models import DispatcherStatus
from tasks.operations import views
from tests.services import valkey_killed

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client, operator):
    client.force_login(operator)
    return lambda query="": client.get(f"/operations/{query}")


@pytest.mark.parametrize("path", ["/operations/", "/operations/tasks/1/"])
def test_it_is_for_staff_who_may_see_background_tasks(client, alice, make_staff, path):
    assert client.get(path).url == f"/accounts/login/?next={path}"
    for person in (alice, make_staff("sven", "tickets.view_ticket")):
        client.force_login(person)
        assert client.get(path).status_code == 403


def test_who_may_not_see_it_has_no_link_to_it(client, alice, operator):
    for person, links in ((alice, 0), (operator, 2)):  # in the bar and in the menu
        client.force_login(person)
        assert client.get("/tickets/").content.decode().count('href="/operations/"') == links


def test_the_numbers_are_the_ledgers(page, busy_ledger, empty_queue):
    empty_queue.rpush("short", "x", "y")
    figures = page().context["figures"]
    assert (figures.due.number, figures.later.number) == (1, 3 + 0)
    assert (figures.running.number, figures.failed.number) == (1, 10)
    assert figures.oldest_due_seconds >= 200
    assert figures.lengths == {"short": 2, "long": 0, "delayed": 0}
    assert figures.is_dispatching and figures.is_late
    text = page().content.decode()
    assert "The dispatcher is well: are enough workers running?" in text


def test_an_empty_ledger_is_a_page_too(page):
    text = page().content.decode()
    assert "No round of the dispatcher has succeeded yet" in text
    assert "No task has an error" in text


def test_a_dispatcher_that_stopped_is_told_from_workers_that_are_late(page, busy_ledger):
    DispatcherStatus.objects.update(last_succeeded_at=Now() - timedelta(seconds=40))
    text = page().content.decode()
    assert "The last successful round of the dispatcher was 40 s ago" in text
    assert "are enough workers running" not in text


def test_the_fault_of_the_last_round_is_shown_until_one_succeeds(page):
    DispatcherStatus.record_start()
    DispatcherStatus.record_fault(0.1, {}, "hand-over: Redis did not answer")
    assert "hand-over: Redis did not answer" in page().content.decode()
    DispatcherStatus.record_success(0.1, {})
    assert "hand-over: Redis did not answer" not in page().content.decode()


@pytest.mark.django_db(transaction=True)
def test_without_redis_the_rest_is_shown(page, busy_ledger):
    with valkey_killed():
        response = page()
    assert "Redis does not answer" in response.content.decode()
    assert response.context["figures"].failed.number == 10


def test_what_the_database_cannot_answer_in_time_is_said(page, busy_ledger, monkeypatch):
    def too_slow(*args):
        raise DatabaseError("canceling statement due to statement timeout")

    monkeypatch.setattr(views, "history", too_slow)
    text = page().content.decode()
    assert "There is too much to be drawn in time" in text
    assert "dead letters" in text


def test_htmx_gets_the_part_it_asks_for(client, page, busy_ledger):
    for part, other in (("figures", "troubles"), ("troubles", "figures")):
        text = client.get(
            f"/operations/?part={part}&hours=1", headers={"HX-Request": "true"}
        ).content.decode()
        assert text.lstrip().startswith(("<div", "<section"))
        assert f'id="{part}"' in text and f'id="{other}"' not in text


@pytest.mark.parametrize(
    "query", ["?hours=x", "?hours=5", "?hours=99999999999", "?part=x", "?as=x"]
)
def test_a_strange_address_shows_the_page(page, query):
    response = page(query)
    assert response.status_code == 200
    assert response.context["span"].hours == 24


def test_it_asks_as_often_for_a_full_ledger_as_for_an_empty_one(
    page, busy_ledger, django_assert_max_num_queries
):
    page()
    with django_assert_max_num_queries(21):
        page()
