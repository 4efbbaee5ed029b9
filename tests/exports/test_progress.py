"""How far an export is: rows, an estimate, and what was announced beside what was written."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from exports import turns
from exports.formats import workbook
from exports.models import Export
from tasks.lease import Lease
from tests.exports.conftest import aged, reloaded
from tickets.models import Notification

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def export(alice, ticket):
    ticket("Fire")
    return Export.objects.request(alice, {"q": "fire"}, ["id"], announced_rows=1)


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def running(export, done: int, total: int, began: timedelta) -> Lease:
    """As if its turn had come ``began`` from now."""
    lease = Lease.claim(export.pk, 0)
    turns.take(export, lease)
    lease.progress(done, total)
    Export.objects.filter(pk=export.pk).update(began_at=Now() + began)
    return lease


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [
        (999, 10, "a few seconds left"),
        (500, 30, "about 30 seconds left"),
        (400, 60, "about 2 minutes left"),
        (100, 60, "about 9 minutes left"),
        (10, 60, "about 2 hours left"),
        (0, 60, ""),
        (500, 2, ""),  # too early to say
    ],
)
def test_it_estimates_the_time_that_is_left(browser, export, done, seconds, words):
    running(export, done, 1_000, timedelta(seconds=-seconds))
    assert reloaded(export).time_left == words
    page = browser.get(f"/exports/{export.pk}/").content.decode()
    assert f"{done} of 1,000 rows" in page
    assert ("left" in page.partition("rows")[2].partition("</p>")[0]) == bool(words)
    if words:
        assert words in page
        assert words in browser.get("/exports/").content.decode()


def test_a_file_whose_rows_are_all_read_is_being_packed(browser, export):
    running(export, 1_000, 1_000, timedelta(seconds=-60))
    page = browser.get(f"/exports/{export.pk}/").content.decode()
    assert "All 1,000 rows are read; the file is being packed…" in page
    assert "left" not in page.partition("packed…")[2].partition("</p>")[0]


def test_a_workbook_says_that_it_is_being_packed(alice, ticket, run, monkeypatch):
    seen = []
    pack = workbook._Book.pack

    def look_then_pack(book):
        seen.append(reloaded(export).is_packed)
        pack(book)

    monkeypatch.setattr(workbook._Book, "pack", look_then_pack)
    ticket("Fire")
    export = Export.objects.request(alice, {}, ["id"], file_format="xlsx")
    assert run(export).rows == 1
    assert seen == [True]


def test_it_estimates_from_the_turn_and_not_from_an_attempt_before(export):
    """The task began an hour ago; then another attempt followed."""
    lease = running(export, 500, 1_000, timedelta(hours=-1))
    lease.release()
    aged(export, started_at=timedelta(hours=-1))
    running(export, 500, 1_000, timedelta(seconds=-20))
    assert reloaded(export).time_left == "about 20 seconds left"


def test_it_estimates_nothing_while_it_waits_or_when_it_has_ended(export, run):
    assert reloaded(export).time_left == ""
    running(export, 500, 1_000, timedelta(seconds=-30)).release()
    assert reloaded(export).time_left == ""
    assert run(reloaded(export)).time_left == ""


def test_it_shows_both_numbers_when_the_tickets_changed_meanwhile(browser, export, ticket, run):
    ticket("Fire again")
    run(export)
    page = browser.get(f"/exports/{export.pk}/").content.decode()
    assert "2 rows," in page
    assert "1 row was announced" in page
    assert "tickets changed meanwhile" in page


def test_it_shows_one_number_when_they_agree_or_none_was_announced(browser, export, alice, run):
    run(export)
    assert "announced" not in browser.get(f"/exports/{export.pk}/").content.decode()
    unannounced = run(Export.objects.request(alice, {}, ["id"]))
    assert "announced" not in browser.get(f"/exports/{unannounced.pk}/").content.decode()


def test_page_and_list_say_what_the_file_is_and_who_asked(browser, alice, ticket, run):
    ticket("Fire")
    export = Export.objects.request(
        alice,
        {"q": "fire"},
        ["id"],
        row_kind="history",
        file_format="csv.gz",
        delimiter=";",
        time_zone="Asia/Tokyo",
    )
    page = browser.get(f"/exports/{export.pk}/").content.decode()
    for text in ("One change in a ticket", "CSV, compressed", "semicolon", "Asia/Tokyo"):
        assert text in page
    for text in (page, browser.get("/exports/").content.decode()):
        assert "Alice Ames" in text
        assert "Search: fire" in text


def test_an_expired_one_offers_the_same_choices_again(browser, alice, ticket, run):
    ticket("Fire")
    export = run(
        Export.objects.request(
            alice, {"q": "fire"}, ["id"], row_kind="conversation", time_zone="Asia/Tokyo"
        )
    )
    aged(export, expires_at=timedelta(seconds=-1))
    for address in (f"/exports/{export.pk}/", "/exports/"):
        page = browser.get(address).content.decode()
        form = page.partition('action="/exports/new/"')[2].partition("</form>")[0]
        for name, value in (
            ("row_kind", "conversation"),
            ("time_zone", "Asia/Tokyo"),
            ("columns", "id"),
            ("q", "fire"),
        ):
            assert f'<input type="hidden" name="{name}" value="{value}">' in form
    assert f"/exports/{export.pk}/" in browser.get("/exports/").content.decode()


def test_the_link_of_a_notification_opens_only_for_its_owner(browser, client, bob, export, run):
    run(export)
    (link,) = Notification.objects.values_list("url", flat=True)
    assert browser.get(link).status_code == 200
    client.force_login(bob)
    assert client.get(link).status_code == 404
    assert client.get(f"{link}download/").status_code == 404
