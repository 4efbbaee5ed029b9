import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tasks.models import DispatcherStatus
from tickets.models import Team, Ticket

pytestmark = pytest.mark.django_db
LEDGER = reverse("admin:tasks_backgroundtask_changelist")


@pytest.fixture
def listed(client, operator):
    """``listed(**query)``: the numbers of the tasks on the list, in its order."""
    client.force_login(operator)

    def numbers(**query):
        response = client.get(LEDGER, query)
        assert response.status_code == 200, response
        return [task.pk for task in response.context["cl"].result_list]

    return numbers


def test_it_shows_the_newest_first_with_status_in_words(client, listed, make_task):
    first, second = make_task("FAILED", last_error="Boom & bust"), make_task("WAITING", attempt=2)
    assert listed() == [second.pk, first.pk]
    content = client.get(LEDGER).content.decode()
    assert '<span class="ledger-status ledger-failed">failed</span>' in content
    assert "Boom &amp; bust" in content
    assert "2/7" in content


def test_progress_is_shown_as_far_as_it_is_known(client, listed, make_task):
    make_task("RUNNING", progress_done=120, progress_total=400)
    make_task("RUNNING", progress_done=77)
    listed()
    content = client.get(LEDGER).content.decode()
    assert "120 / 400" in content
    assert ">77<" in content


@pytest.mark.parametrize("term", ["{pk}", "#{pk}", "{pk}:0", "{pk}:5", " {pk} "])
def test_a_task_is_found_by_its_number_and_job_id(listed, make_task, term):
    task = make_task("FAILED")
    make_task("FAILED")
    assert listed(q=term.format(pk=task.pk)) == [task.pk]


def test_a_task_is_found_by_dedup_key_and_ticket(listed, make_task):
    ticket = Ticket.objects.create(
        pk=9_000_017, team=Team.objects.create(name="Support", slug="support"), subject="Broken"
    )
    keyed, of_ticket = make_task(dedup_key="reminder:17:3"), make_task(ticket=ticket)
    make_task()
    assert listed(q="reminder:17") == [keyed.pk]
    assert listed(q="9000017") == [of_ticket.pk]


@pytest.mark.parametrize("term", ["9" * 40, "9" * 40 + ":1", "12:", ":", "%", "²", "' OR 1=1"])
def test_a_search_for_nonsense_finds_nothing(listed, make_task, term):
    make_task()
    assert listed(q=term) == []


def test_a_search_with_null_characters_is_no_crash(client, listed, make_task):
    make_task()
    listed()
    assert client.get(LEDGER, {"q": "a\0b"}).status_code == 200


def test_it_is_filtered_by_status_kind_and_error(listed, make_task):
    failed, waiting = make_task("FAILED", last_error="Boom"), make_task("WAITING")
    other = make_task("WAITING", kind="FORGOTTEN", dispatched_at=timezone.now())
    assert listed(status__exact="FAILED") == [failed.pk]
    assert listed(kind="CHORE") == [waiting.pk, failed.pk]
    assert listed(kind="FORGOTTEN") == [other.pk]
    assert listed(concern="error") == [failed.pk]
    assert listed(concern="unseen") == [waiting.pk]
    assert len(listed(concern="nonsense")) == 3


def test_stale_leases_are_marked_and_filtered(client, listed, make_task):
    long_ago = timezone.now() - timedelta(minutes=10)
    stale = make_task("RUNNING", updated_at=long_ago)
    make_task("RUNNING")
    make_task("WAITING", updated_at=long_ago)
    assert listed(concern="lease") == [stale.pk]
    assert client.get(LEDGER).content.decode().count("running</span> no sign of life") == 1


def test_dates_filter(listed, make_task):
    today, old = make_task(), make_task(created_at=timezone.now() - timedelta(days=40))
    day = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    assert old.pk not in listed(created_at__gte=str(day))
    assert today.pk in listed(created_at__gte=str(day))


def test_it_explains_waiting_and_shows_the_last_round(client, listed):
    listed()
    assert "has not completed a round" in client.get(LEDGER).content.decode()
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.1, {"scanned": 1})
    content = client.get(LEDGER).content.decode()
    assert "is not stuck" in content
    assert re.search(r"Last successful round.*\d s ago", content, re.DOTALL)


def test_before_any_success_no_age_is_invented(client, listed):
    DispatcherStatus.record_start()
    listed()
    assert "has not completed a round" in client.get(LEDGER).content.decode()


def test_it_takes_the_same_queries_for_many_rows(client, operator, make_staff, make_task):
    team = Team.objects.create(name="Support", slug="support")
    client.force_login(operator)

    def queries():
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert client.get(LEDGER).status_code == 200
        return captured.captured_queries

    make_task()
    few = queries()
    for number in range(12):
        ticket = Ticket.objects.create(team=team, subject="Broken")
        make_task(owner=make_staff(f"owner{number}"), ticket=ticket, team=team)
    many = queries()
    assert len(many) == len(few)
    # A page of a table with millions of rows never counts them all.
    counts = [
        query["sql"] for query in many if "COUNT(" in query["sql"] and "tasks_" in query["sql"]
    ]
    assert counts
    assert all("LIMIT 10001" in sql for sql in counts)


def test_a_list_too_long_to_count_says_so(client, listed, make_task, monkeypatch):
    monkeypatch.setattr("tasks.admin.rows.COUNT_LIMIT", 2)
    for _ in range(4):
        make_task()
    listed()
    assert "counting stops here" in client.get(LEDGER).content.decode()
