"""Finding tasks by ticket, owner, kind, state and error."""

import pytest
from django.db import DatabaseError

from tasks.operations import search

pytestmark = pytest.mark.django_db


@pytest.fixture
def find(client, operator):
    """``find(**fields)``: the numbers of the tasks that the page lists, newest first."""

    def ask(**fields):
        client.force_login(operator)
        context = client.get("/operations/", fields).context
        return [task.pk for task in context.get("found", [])]

    return ask


def test_each_field_narrows(find, make_task, ticket, alice, bob):
    mine = make_task(ticket=ticket, owner=bob)
    failed = make_task("FAILED", owner=bob, last_error="TimeoutError: no answer")
    other = make_task("FAILED", kind="REMINDER", owner=alice, last_error="ValueError")
    assert find(ticket=ticket.pk, kind="CHORE") == [mine.pk]
    assert find(owner="bob") == [failed.pk, mine.pk]
    assert find(owner="BERG") == [failed.pk, mine.pk]
    assert find(owner="alice@example.org", status="FAILED") == [other.pk]
    assert find(kind="REMINDER", status="FAILED") == [other.pk]
    assert find(error="no ANSWER") == [failed.pk]
    assert find(task=mine.pk) == [mine.pk]
    assert find(owner="bob", status="FAILED", error="answer") == [failed.pk]
    assert find(owner="nobody") == []
    assert find() == []  # nothing was asked


@pytest.mark.parametrize("text", ["%", "_", "\\", "'", '"', "( [ ] ) ?"])
def test_no_character_of_an_error_is_special(find, make_task, text):
    found = make_task("FAILED", last_error=f"Boom {text} bang")
    make_task("FAILED", last_error="Boom bang")
    assert find(error=text) == [found.pk]


@pytest.mark.parametrize(
    "fields",
    [{"task": "x"}, {"ticket": "-1"}, {"task": "9" * 30}, {"kind": "NONE"}, {"status": "x"},
     {"error": "a\0b"}, {"owner": "x" * 151}],
)  # fmt: skip
def test_bad_input_is_complained_about(client, operator, fields):
    client.force_login(operator)
    response = client.get("/operations/", fields)
    assert response.status_code == 200
    assert response.context["form"].errors.keys() == fields.keys()
    assert "found" not in response.context


def test_more_than_a_page_says_so(client, operator, make_task, monkeypatch):
    monkeypatch.setattr(search, "ROWS", 2)
    for _ in range(3):
        make_task()
    client.force_login(operator)
    response = client.get("/operations/", {"kind": "CHORE"})
    assert len(response.context["found"]) == 2
    assert "there are more" in response.content.decode()


def test_a_search_that_takes_too_long_says_what_would_help(client, operator, monkeypatch):
    def too_slow(form):
        raise DatabaseError("canceling statement due to statement timeout")

    monkeypatch.setattr(search.SearchForm, "found", too_slow)
    client.force_login(operator)
    assert "Say more" in client.get("/operations/", {"error": "x"}).content.decode()
