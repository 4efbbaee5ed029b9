"""Choosing tickets in the list and exporting them, with mouse, keyboard and without a script."""

import pytest
from playwright.sync_api import expect

from exports.models import Export

from .test_accessibility import broken_rules
from .test_keyboard import FOCUSED, tab_to

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def box(page, subject):
    return page.get_by_role("checkbox", name=subject)


def chosen(page):
    return page.locator("tbody .row-tick :checked")


def said(page):
    return page.locator("#announcer")


@pytest.mark.parametrize("width", [1280, 390])
def test_chosen_tickets_are_exported(open_page, desk, bob, width):
    page = open_page("/tickets/", person=bob, width=width)
    button = page.get_by_role("button", name="Export selected")
    expect(button).to_be_hidden()
    box(page, "Printer on fire").check()
    expect(button).to_be_visible()
    expect(said(page)).to_have_text("1 ticket chosen")
    box(page, "Ticket number 2").check()
    expect(page.locator("[data-chosen-count]")).to_have_text("2 tickets chosen")
    button.click()
    expect(page.get_by_text("2 chosen tickets")).to_be_visible()
    page.get_by_role("button", name="Export 2 tickets").click()
    expect(page.get_by_role("heading", name="Export #")).to_be_visible()
    export = Export.objects.latest("task")
    subjects = export.tickets().values_list("subject", flat=True)
    assert {subject[:15] for subject in subjects} == {"Printer on fire", "Ticket number 2"}


def test_all_on_the_page_can_be_chosen_and_cleared(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    everything = page.get_by_role("checkbox", name="Choose all on this page")
    everything.check()
    expect(chosen(page)).to_have_count(5)
    expect(said(page)).to_have_text("5 tickets chosen")
    box(page, "Printer on fire").uncheck()
    assert everything.evaluate("box => box.indeterminate")
    page.get_by_role("button", name="Clear").click()
    expect(chosen(page)).to_have_count(0)
    expect(page.get_by_role("button", name="Export selected")).to_be_hidden()
    expect(everything).to_be_focused()


def test_on_a_phone_all_can_be_chosen_from_the_bar(open_page, desk, bob):
    page = open_page("/tickets/", person=bob, width=390)
    box(page, "Printer on fire").check()
    page.get_by_label("All on this page").and_(page.locator(".chosen-bar input")).check()
    expect(chosen(page)).to_have_count(5)


def test_shift_chooses_all_between_two(open_page, desk, bob):
    page = open_page("/tickets/?sort=id", person=bob)
    boxes = page.locator("tbody .row-tick input")
    boxes.nth(1).click()
    boxes.nth(3).click(modifiers=["Shift"])
    expect(chosen(page)).to_have_count(3)


def test_a_new_list_begins_with_nothing_chosen(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    box(page, "Printer on fire").check()
    page.get_by_role("searchbox").fill("number")
    expect(page.locator("#results tbody tr")).to_have_count(4)
    expect(page.get_by_role("button", name="Export selected")).to_be_hidden()
    expect(chosen(page)).to_have_count(0)


def test_the_keyboard_suffices(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    tab_to(page, f"[name=id][value='{desk.pk}']")
    page.keyboard.press("Space")
    tab_to(page, ".chosen-bar button:last-child")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 chosen ticket")).to_be_visible()
    tab_to(page, "#dialog [name=row_kind]")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Export 2 rows")).to_be_visible()
    assert page.evaluate(FOCUSED, "#dialog [name=row_kind][value=conversation]")
    tab_to(page, "#dialog .btn-primary")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Export #")).to_be_visible()
    assert Export.objects.latest("task").row_kind == "conversation"


def test_another_kind_of_row_brings_its_columns_and_number(open_page, desk, bob):
    page = open_page("/exports/new/?q=printer", person=bob)
    page.get_by_label("Format").select_option("xlsx")
    expect(page.get_by_label("Delimiter")).to_be_hidden()
    page.evaluate("window.sameDocument = true")
    page.get_by_label("One message of a ticket").check()
    expect(page.get_by_role("button", name="Export 2 rows")).to_be_visible()
    expect(said(page)).to_have_text("2 rows")
    expect(page.get_by_role("checkbox", name="Author")).to_be_checked()
    expect(page.get_by_label("Format")).to_have_value("xlsx")
    page.get_by_role("button", name="None").click()
    expect(page.locator("[name=columns]:checked")).to_have_count(0)
    page.get_by_role("checkbox", name="Author").check()
    assert page.evaluate("window.sameDocument")
    page.get_by_role("button", name="Export 2 rows").click()
    expect(page.get_by_role("heading", name="Export #")).to_be_visible()
    export = Export.objects.latest("task")
    assert (export.row_kind, export.file_format, export.announced_rows) == (
        "conversation",
        "xlsx",
        2,
    )
    assert export.columns == ["author"]


def test_everything_works_without_a_script(open_page, desk, bob):
    page = open_page("/tickets/", person=bob, script=False)
    expect(page.get_by_role("checkbox", name="Choose all on this page")).to_be_hidden()
    box(page, "Printer on fire").check()
    page.get_by_role("button", name="Export selected").click()
    expect(page.get_by_text("1 chosen ticket")).to_be_visible()
    page.get_by_label("One change in a ticket").check()
    page.get_by_role("button", name="Export 1 ticket").click()
    expect(page.get_by_text("Look at them, then export.")).to_be_visible()
    page.get_by_role("button", name="rows").click()
    expect(page.get_by_role("heading", name="Export #")).to_be_visible()
    assert Export.objects.latest("task").row_kind == "history"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_state_breaks_a_rule(open_page, desk, bob, theme, width, settings):
    page = open_page("/tickets/", person=bob, width=width, theme=theme)
    box(page, "Printer on fire").check()
    assert broken_rules(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto("/exports/new/?q=number")
    page.get_by_label("One change in a ticket").check()
    page.get_by_role("button", name="rows").wait_for()
    assert broken_rules(page) == []
    export = Export.objects.request(bob, {}, announced_rows=7)
    settings.TEAMDESK_EXPORTS_PER_PERSON = 1
    page.goto(f"/exports/{export.pk}/")
    assert broken_rules(page) == []
    page.goto("/exports/new/")
    expect(page.get_by_text("under way, and no more are allowed")).to_be_visible()
    assert broken_rules(page) == []
    page.goto("/exports/")
    assert broken_rules(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
