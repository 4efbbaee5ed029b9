"""No page breaks a rule of axe-core, in light and dark, wide and narrow."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from .conftest import paths

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def broken_rules(page):
    response = Axe().run(page).response
    return [
        (each["id"], [(node["target"], node["any"][:1]) for node in each["nodes"][:3]])
        for each in response["violations"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_break_no_rule(open_page, desk, bob, vera, theme, width):
    broken = {}
    page = open_page("/accounts/login/", width=width, theme=theme)
    broken["login"] = broken_rules(page)
    page = open_page("/tickets/", person=bob, width=width, theme=theme)
    for name, path in paths(desk).items():
        page.goto(path)
        assert page.locator("html").get_attribute("data-bs-theme") == theme
        broken[name] = broken_rules(page)
        for menu in page.locator("details[data-menu] > summary").all():
            menu.click()
            broken[f"{name}: {menu.inner_text()}"] = broken_rules(page)
            menu.press("Escape")
    page = open_page(f"/tickets/{desk.pk}/", person=vera, width=width, theme=theme)
    broken["ticket of a viewer"] = broken_rules(page)
    assert {name: rules for name, rules in broken.items() if rules} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_conflicts_and_complaints_break_no_rule(open_page, desk, alice, bob, theme):
    page = open_page(f"/tickets/{desk.pk}/edit/", person=bob, theme=theme)
    desk.edit(by=alice, changes={"subject": "Alice's subject", "status": "on_hold"})
    page.get_by_label("Subject").fill("Bob's subject")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Save with these values").wait_for()
    assert broken_rules(page) == []
    page.get_by_label("Subject").fill("")
    page.get_by_role("button", name="Save with these values").click()
    page.get_by_text("This field is required.").wait_for()
    assert broken_rules(page) == []
    page.goto(f"/tickets/{desk.pk}/")
    desk.set_status("open", by=alice)
    page.get_by_label("Status").select_option("closed")
    page.get_by_role("button", name="Save mine anyway").wait_for()
    assert broken_rules(page) == []
    page.goto(f"/tickets/{desk.pk}/")
    page.get_by_label("Your text").fill("On my way")
    desk.comment(by=alice, body="They called back")
    page.get_by_role("button", name="Send reply").click()
    page.get_by_text("Another person wrote while you were writing.").wait_for()
    assert broken_rules(page) == []


def test_an_internal_note_being_written_is_readable(open_page, desk, bob):
    for theme in ("light", "dark"):
        page = open_page(f"/tickets/{desk.pk}/", person=bob, theme=theme)
        page.get_by_label("Internal note").check()
        page.get_by_label("Your text").fill("Between us")
        assert broken_rules(page) == []


def test_no_page_scrolls_sideways_on_a_small_phone(open_page, desk, bob):
    page = open_page("/accounts/login/", width=360)
    wide = {"login": page.evaluate("document.documentElement.scrollWidth")}
    page = open_page("/tickets/", person=bob, width=360)
    for name, path in paths(desk).items():
        page.goto(path)
        wide[name] = page.evaluate("document.documentElement.scrollWidth")
    assert {name: width for name, width in wide.items() if width > 360} == {}
