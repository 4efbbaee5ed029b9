"""From the ticket list to the file, in a real browser, without a reload."""

import csv

import pytest
from playwright.sync_api import expect

from exports.models import Export
from tasks.lease import Lease
from tasks.worker import run_job

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(live_server, chromium, client, alice):
    """Alice's, logged in. Whatever the console complains about fails the test."""
    client.force_login(alice)
    complaints = []
    context = chromium.new_context(base_url=live_server.url)
    session = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page = context.new_page()
    page.on("console", lambda told: complaints.append(told.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []


@pytest.fixture
def tickets(ticket):
    return [ticket("Fire in Reykjavík"), ticket("=Fire()"), ticket("Water")]


def test_it_leads_from_the_list_to_the_file(page, tickets):
    page.goto("/tickets/?q=fire")
    page.get_by_role("link", name="Export", exact=True).click()
    page.get_by_label("Description").uncheck()
    page.get_by_role("button", name="Export 2 tickets").click()
    expect(page.get_by_text("Waiting for a free worker")).to_be_visible()
    page.evaluate("window.sameDocument = true")

    export = Export.objects.get()
    lease = Lease.claim(export.pk, 0)
    lease.progress(1, 2)
    expect(page.get_by_text("1 of 2 rows")).to_be_visible()
    lease.release()
    run_job(export.pk, 0)
    expect(page.get_by_text("2 rows,")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="The export is ready.")).to_be_attached()

    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert page.evaluate("window.sameDocument")
    with download.value.path().open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["Subject"] for row in rows} == {"Fire in Reykjavík", "'=Fire()"}
    assert "Description" not in rows[0]


def test_it_stops_asking_when_it_has_ended(page, alice, tickets):
    export = Export.objects.request(by=alice, filters={})
    page.goto(f"/exports/{export.pk}/")
    run_job(export.pk, 0)
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    assert page.locator("#export-state[hx-get]").count() == 0


def test_it_shows_progress_in_the_list(page, alice, tickets):
    export = Export.objects.request(by=alice, filters={})
    page.goto("/exports/")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.evaluate("window.sameDocument = true")
    run_job(export.pk, 0)
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    assert page.evaluate("window.sameDocument")


def test_it_cancels_and_retries(page, alice, tickets):
    export = Export.objects.request(by=alice, filters={})
    page.goto(f"/exports/{export.pk}/")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    run_job(export.pk, 1)
    expect(page.get_by_role("link", name="Download")).to_be_visible()
