"""The operations pages in a real browser: no rule of axe-core broken, no sideways scrolling, and
figures that change by themselves."""

import os

import pytest
from playwright.sync_api import expect

from tasks.models import BackgroundTask
from tests.browser.test_accessibility import broken_rules

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def shoot(page, name):
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_pages_break_no_rule(open_page, busy_ledger, root, theme, width):
    broken, wide = {}, {}
    page = open_page("/operations/", person=root, width=width, theme=theme)
    for name, path in {
        "home": "/operations/",
        "tables": "/operations/?as=tables&hours=168",
        "found": "/operations/?kind=CHORE&status=FAILED",
        "wrong": "/operations/?ticket=x",
        "task": f"/operations/tasks/{busy_ledger.pk}/",
    }.items():
        page.goto(path)
        shoot(page, f"operations-{name}-{width}-{theme}")
        broken[name] = broken_rules(page)
        wide[name] = page.evaluate("document.documentElement.scrollWidth")
    assert {name: rules for name, rules in broken.items() if rules} == {}
    assert {name: pixels for name, pixels in wide.items() if pixels > width} == {}


def test_the_figures_change_by_themselves(open_page, busy_ledger, root, make_task):
    page = open_page("/operations/?hours=1", person=root)
    failed = page.locator(".tile", has_text="Failed").locator("dd").first
    expect(failed).to_have_text("10")
    make_task("FAILED", last_error="Boom")
    expect(failed).to_have_text("11", timeout=20_000)
    assert page.locator("#span-1").get_attribute("aria-current") == "true"


def test_a_group_is_retried_by_keyboard_while_the_page_changes(open_page, busy_ledger, root):
    page = open_page("/operations/", person=root)
    button = page.get_by_role("button", name="Retry all")
    button.focus()
    with page.expect_response(lambda response: "part=troubles" in response.url, timeout=20_000):
        pass
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("To be run again:")).to_be_visible()
    assert BackgroundTask.objects.filter(run=1, status="WAITING").count() == 9


def test_a_traceback_stays_open_while_its_task_lives_on(open_page, busy_ledger, root, attempt):
    busy_ledger.retry()
    page = open_page(f"/operations/tasks/{busy_ledger.pk}/", person=root)
    page.locator("summary", has_text="Traceback").first.click()
    attempt(busy_ledger, 1, "failed", error="once more")
    expect(page.get_by_text("once more")).to_be_visible(timeout=20_000)
    expect(page.locator("details[open]", has_text="run_export")).to_be_visible()
