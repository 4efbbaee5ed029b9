"""A day's work without a mouse."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FOCUSED = "selector => document.activeElement.matches(selector)"


def tab_to(page, selector):
    for _press in range(80):
        if page.evaluate(FOCUSED, selector):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never reached {selector}")


def test_log_in_open_a_ticket_and_reply(open_page, desk, bob):
    page = open_page("/accounts/login/")
    page.keyboard.type("bob")
    page.keyboard.press("Tab")
    page.keyboard.type("secret")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tickets")).to_be_visible()
    tab_to(page, ".row-link")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Printer on fire")).to_be_visible()
    tab_to(page, "#comment-body")
    page.keyboard.type("We are on our way.")
    tab_to(page, ".composer-send .btn-primary")
    page.keyboard.press("Enter")
    expect(page.locator(".comment-body", has_text="We are on our way.")).to_be_visible()
    comment = desk.comments.latest("id")
    assert (comment.body, comment.is_public, comment.author) == ("We are on our way.", True, bob)


def test_the_first_tab_skips_to_the_content(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_menus_open_and_close(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    tab_to(page, ".filter-button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Status")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("link", name="Remove the filter Status: open")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Status")).to_be_hidden()
    assert page.evaluate(FOCUSED, ".filter-button")


def test_slash_goes_to_the_search_field(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    page.keyboard.press("/")
    page.keyboard.type("printer")
    expect(page.get_by_role("searchbox")).to_have_value("printer")
    expect(page.locator("#results tbody tr")).to_have_count(1)


def test_r_replies_n_notes_and_what_came_meanwhile_is_read_before_it_is_sent(
    open_page, desk, alice, bob
):
    page = open_page(f"/tickets/{desk.pk}/", person=bob)
    page.keyboard.press("r")
    expect(page.get_by_role("radio", name="Reply")).to_be_checked()
    page.locator("#comment-body").blur()
    page.keyboard.press("n")
    expect(page.get_by_role("radio", name="Internal note")).to_be_checked()
    page.keyboard.type("rn: ask Mara")
    theirs = desk.comment(by=alice, body="Mara called", is_public=False)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing of yours was sent yet")
    expect(page.locator(f"#comment-{theirs.pk}")).to_contain_text("Mara called")
    expect(page.locator("#comment-body")).to_have_value("rn: ask Mara")
    expect(page.locator("#comment-body")).to_be_focused()
    expect(page.get_by_role("radio", name="Internal note")).to_be_checked()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".comment-body", has_text="rn: ask Mara")).to_be_visible()
    mine = desk.comments.latest("id")
    assert (mine.body, mine.is_public, mine.author) == ("rn: ask Mara", False, bob)
