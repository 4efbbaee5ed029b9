"""From the ticket list to an export that repeats itself, in a real browser."""

import pytest
from playwright.sync_api import expect

from exports.models import ScheduledExport
from tests.browser.conftest import open_page  # noqa: F401  a fixture

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_it_leads_from_the_list_to_a_schedule(open_page, alice, ticket):  # noqa: F811
    ticket("Fire"), ticket("Water")
    page = open_page("/tickets/?q=fire", person=alice)
    page.get_by_role("link", name="Export", exact=True).click()
    page.get_by_label("Team", exact=True).uncheck()
    page.get_by_label("Format").select_option("jsonl")
    page.get_by_role("button", name="Repeat…").click()
    expect(page.get_by_role("heading", name="New scheduled export")).to_be_visible()
    expect(page.get_by_label("Format")).to_have_value("jsonl")
    expect(page.get_by_label("Delimiter")).to_be_hidden()  # that format has none
    expect(page.get_by_label("Day of the month")).to_be_hidden()
    page.get_by_role("textbox", name="Name").fill("Fires")
    page.get_by_label("Friday").check()
    page.get_by_label("Time of day").fill("07:30")
    page.get_by_role("button", name="Schedule", exact=True).click()
    expect(page.get_by_text("“Fires” runs next on")).to_be_visible()
    expect(page.get_by_text("Every Monday, Friday at 7:30 a.m. (UTC)")).to_be_visible()
    scheduled = ScheduledExport.objects.get()
    assert (scheduled.filters, scheduled.file_format) == ({"q": "fire"}, "jsonl")
    assert "team" not in scheduled.columns and "subject" in scheduled.columns


def test_enter_in_the_new_exports_form_still_exports(open_page, alice, ticket):  # noqa: F811
    ticket("Fire")
    page = open_page("/exports/new/", person=alice)
    page.get_by_label("Time zone").press("Enter")
    expect(page.get_by_text("Waiting for a free worker")).to_be_visible()
    assert not ScheduledExport.objects.exists()
