"""Limits per person and per file: refused before any work, and held while it is written."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from exports import jobs
from exports.models import Export, LimitReached
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tests.exports.conftest import aged, reloaded
from tickets.models import Notification

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/new/"
JSON = {"accept": "application/json"}


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture(autouse=True)
def _limits(settings):
    settings.TEAMDESK_EXPORTS_PER_PERSON = 2
    settings.TEAMDESK_EXPORT_MAX_ROWS = 3
    settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON = 2_000


def asked(person, **choices) -> Export:
    return Export.objects.request(person, choices.pop("filters", {}), ["id"], **choices)


def stored(person, run, size: int) -> Export:
    """A finished export of that size, on paper."""
    export = run(asked(person))
    Export.objects.filter(pk=export.pk).update(size=size)
    return export


# Exports under way


def test_the_first_beyond_the_limit_is_refused_with_what_to_do(browser, alice):
    asked(alice), asked(alice)
    page = browser.post(URL, {"columns": ["id"]})
    text = page.content.decode()
    assert page.status_code == 422
    assert "You have 2 exports under way" in text
    assert "Wait until one has ended, or cancel one." in text
    answer = browser.post(URL, headers=JSON)
    assert answer.status_code == 429
    assert answer.json()["error"].startswith("You have 2 exports under way")
    assert Export.objects.count() == BackgroundTask.objects.count() == 2


def test_the_page_says_so_before_anybody_chose_anything(browser, alice):
    assert "under way" not in browser.get(URL).content.decode()
    asked(alice), asked(alice)
    page = browser.get(URL)
    assert page.status_code == 200
    assert "You have 2 exports under way" in page.content.decode()


def test_there_is_room_again_when_one_has_ended_or_is_cancelled(alice, run):
    first, second = asked(alice), asked(alice)
    run(first)
    third = asked(alice)
    second.cancel(by=alice)
    fourth = asked(alice)
    with pytest.raises(LimitReached):
        asked(alice)
    assert {third.task.status, fourth.task.status} == {TaskStatus.WAITING}


def test_running_ones_count_and_other_peoples_do_not(alice, bob):
    Lease.claim(asked(alice).pk, 0)
    asked(alice)
    with pytest.raises(LimitReached):
        asked(alice)
    assert asked(bob).requester == bob


def test_a_second_click_is_the_same_export_also_at_the_limit(browser, alice):
    asked(alice)
    key = "00000000-0000-0000-0000-000000000001"
    first, second = (browser.post(URL, {"columns": ["id"], "key": key}) for _ in range(2))
    assert (first.status_code, second["Location"]) == (302, first["Location"])


def test_a_retry_is_one_more_under_way(browser, alice):
    cancelled = asked(alice)
    cancelled.cancel(by=alice)
    asked(alice), asked(alice)
    address = f"/exports/{cancelled.pk}/retry/"
    page = browser.post(address)
    assert page.status_code == 422
    assert "You have 2 exports under way" in page.content.decode()
    answer = browser.post(address, headers=JSON)
    assert (answer.status_code, set(answer.json())) == (429, {"error"})
    assert reloaded(cancelled).task.status == TaskStatus.CANCELLED
    assert reloaded(cancelled).task.run == 0


def test_a_second_click_on_retry_is_no_error_at_the_limit(browser, alice):
    cancelled = asked(alice)
    cancelled.cancel(by=alice)
    asked(alice)
    address = f"/exports/{cancelled.pk}/retry/"
    assert [browser.post(address).status_code for _ in range(2)] == [302, 302]
    assert reloaded(cancelled).task.run == 1


def test_two_requests_at_once_do_not_both_slip_under_the_limit(alice, actor):
    """The second comes while the first is not committed: it waits, and then counts it."""
    asked(alice)
    first, second = actor("first"), actor("second")
    first.begin()
    first.do(asked, alice)
    refused = second.start(asked, alice)
    second.wait_until_blocked()
    first.commit()
    with pytest.raises(LimitReached):
        refused.result(timeout=30)
    assert BackgroundTask.objects.live().count() == 2


def test_a_retry_and_a_request_at_once_do_not_both_slip_under_the_limit(alice, actor):
    asked(alice)
    cancelled = asked(alice)
    cancelled.cancel(by=alice)
    first, second = actor("first"), actor("second")
    first.begin()
    first.do(asked, alice)
    refused = second.start(reloaded(cancelled).retry, alice)
    second.wait_until_blocked()
    first.commit()
    with pytest.raises(LimitReached):
        refused.result(timeout=30)
    assert reloaded(cancelled).task.status == TaskStatus.CANCELLED


# Rows of a file


def test_more_rows_than_a_file_may_have_are_refused_before_any_work(browser, ticket):
    for number in range(4):
        ticket(f"Fire {number}")
    advice = "Narrow the filters, for example to a month, and export in parts."
    assert advice in browser.get(URL).content.decode()
    page = browser.post(URL, {"columns": ["id"], "announced_rows": "4"})
    assert page.status_code == 422
    assert "A file may have 3 rows" in page.content.decode()
    answer = browser.post(URL, headers=JSON)
    assert answer.status_code == 400
    assert advice in answer.json()["error"]
    assert not BackgroundTask.objects.exists()
    assert browser.post(URL, {"q": "Fire 1"}, headers=JSON).status_code == 202


def test_rows_are_those_of_the_kind(browser, ticket, alice):
    busy = ticket("Fire")
    for number in range(4):
        busy.comment(by=alice, body=f"Answer {number}")
    assert browser.post(URL, {"row_kind": "conversation"}, headers=JSON).status_code == 400
    assert browser.post(URL, {"row_kind": "tickets"}, headers=JSON).status_code == 202


def test_a_request_counts_nothing_where_the_tables_cannot_hold_so_many(
    settings, alice, ticket, django_assert_num_queries
):
    settings.TEAMDESK_EXPORT_MAX_ROWS = 1_000
    ticket("Fire")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tickets_ticket, tickets_comment, tickets_ticketevent")
    tickets = asked(alice).tickets()
    with django_assert_num_queries(1):  # of the estimate
        Export.objects.refuse_rows(tickets, "tickets")
    settings.TEAMDESK_EXPORT_MAX_ROWS = 1
    with django_assert_num_queries(2):
        Export.objects.refuse_rows(tickets, "tickets")


def test_tickets_that_came_after_the_request_fail_it_with_the_same_advice(alice, ticket, run):
    export = asked(alice)
    for number in range(4):
        ticket(f"Fire {number}")
    export = run(export)
    assert (export.task.status, export.task.attempt) == (TaskStatus.FAILED, 1)
    assert export.error.startswith("A file may have 3 rows, and this one would have more.")
    assert not export.chunks.exists()


# Stored bytes


def test_a_full_store_refuses_until_the_first_file_expires(browser, alice, run):
    export = stored(alice, run, 2_000)
    page = browser.post(URL, {"columns": ["id"]})
    assert page.status_code == 422
    assert "Your files take all of the 2.0\xa0KB that they may." in page.content.decode()
    when = timezone.localtime(export.task.expires_at)
    answer = browser.post(URL, headers=JSON)
    assert answer.status_code == 429
    assert f"{when:%Y}" in answer.json()["error"]
    assert Export.objects.count() == 1


def test_expired_files_and_other_peoples_do_not_count(alice, bob, run):
    expired = stored(alice, run, 2_000)
    aged(expired, expires_at=timedelta(seconds=-1))
    asked(alice).cancel(by=alice)
    stored(bob, run, 2_000)
    assert asked(alice).task.status == TaskStatus.WAITING


@pytest.mark.parametrize("file_format", ["csv", "xlsx"])
def test_a_file_that_grows_beyond_what_is_left_fails_and_leaves_nothing(
    alice, ticket, run, monkeypatch, file_format
):
    monkeypatch.setattr(jobs, "CHUNK_BYTES", 100)
    for number in range(3):
        ticket(f"Fire {number}", description="x" * 5_000)
    columns = ["id", "subject", "description"]
    export = Export.objects.request(alice, {}, columns, file_format=file_format)
    stored(alice, run, 1_990)
    export = run(export)
    assert (export.task.status, export.task.attempt) == (TaskStatus.FAILED, 1)
    assert "would take more than the 2.0\xa0KB" in export.error
    assert "Choose fewer columns, narrow the filters, or delete older files." in export.error
    assert (export.size, export.execution_id) == (None, None)
    assert Notification.objects.filter(url=f"/exports/{export.pk}/").count() == 0


def test_writing_stops_at_the_limit_and_not_at_the_end(alice, ticket, run, monkeypatch, settings):
    monkeypatch.setattr(jobs, "CHUNK_BYTES", 100)
    settings.TEAMDESK_EXPORT_MAX_ROWS = 200
    settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON = 500
    for number in range(100):
        ticket(f"Fire {number}", description="x" * 100)
    export = run(Export.objects.request(alice, {}, ["id", "description"]))
    assert export.task.status == TaskStatus.FAILED
    assert sum(len(chunk.data) for chunk in export.chunks.all()) < 1_500  # of more than 10,000


def test_two_files_that_end_at_once_keep_to_the_limit_together(alice, ticket, actor, settings):
    """Each alone fits. The second ends while the first is not committed: it waits for that."""
    settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON = 30
    for number in range(3):
        ticket(f"Fire {number}")
    leases = [Lease.claim(asked(alice).pk, 0) for _ in range(2)]
    effects = [jobs.run_export(lease.task, lease) for lease in leases]
    first, second = actor("first"), actor("second")
    first.begin()
    first.do(leases[0].complete, effects[0])
    late = second.start(leases[1].complete, effects[1])
    second.wait_until_blocked()
    first.commit()
    with pytest.raises(jobs.PermanentFailure, match="more than the 30\xa0bytes"):
        late.result(timeout=30)
    exports = Export.objects.order_by("pk")
    assert [export.size is None for export in exports] == [False, True]
