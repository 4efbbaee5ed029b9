"""Everything works with scripts switched off, only with more page loads."""

import pytest
from playwright.sync_api import expect

from tickets.views import list as list_view

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_days_work(open_page, desk, bob):
    page = open_page("/accounts/login/", script=False)
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("searchbox").fill("fire")
    page.locator("#filters").get_by_text("Status", exact=True).click()
    page.get_by_label("Pending").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Printer on fire").click()
    page.get_by_label("Status").select_option("on_hold")
    page.locator("form", has=page.get_by_label("Status")).get_by_role("button").click()
    expect(page.get_by_text("The status is changed.")).to_be_visible()
    page.get_by_role("button", name="tomorrow 9:00").click()
    expect(page.get_by_text("The due date is changed.")).to_be_visible()
    page.get_by_text("Internal note", exact=True).last.click()
    page.get_by_label("Your text").fill("Waiting for the part.")
    page.get_by_role("button", name="Add internal note").click()
    expect(page.locator(".comment.is-note", has_text="Waiting for the part.")).to_be_visible()
    desk.refresh_from_db()
    assert (desk.status, desk.due_at.hour) == ("on_hold", 9)


def test_views_columns_and_pages(open_page, desk, bob, monkeypatch):
    monkeypatch.setattr(list_view, "PER_PAGE", 2)
    page = open_page("/tickets/?priority=low&priority=normal", person=bob, script=False)
    page.get_by_text("Columns", exact=True).click()
    page.locator("#columns").get_by_label("Creator").check()
    page.locator("#columns").get_by_label("Team").uncheck()
    page.get_by_role("button", name="Show these").click()
    expect(page.get_by_role("columnheader", name="Creator")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Team")).to_have_count(0)
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Previous").click()
    expect(page.locator("#results tbody tr")).to_have_count(2)
    page.get_by_role("link", name="Save as view").click()
    page.get_by_label("Name").fill("Quiet ones")
    page.get_by_role("button", name="Save view").click()
    expect(page.get_by_role("link", name="Quiet ones 3")).to_have_attribute("aria-current", "page")
    page.get_by_role("link", name="Saved views").click()
    page.get_by_role("button", name="Move up: Quiet ones").click()
    page.get_by_role("row", name="Quiet ones").get_by_role("link", name="Edit").click()
    page.get_by_text("Delete…").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("link", name="Quiet ones")).to_have_count(0)
