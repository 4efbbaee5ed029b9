"""What changes on a page without loading it anew."""

import re

import pytest
from playwright.sync_api import expect

from tickets.models import Notification, Ticket

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_typing_a_search_swaps_the_results_and_the_url(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    page.evaluate("window.same = true")
    page.get_by_role("searchbox").press_sequentially("on fire")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/tickets/\?q=on\+fire$"))
    expect(page.locator("#total")).to_have_text("1")
    expect(page.get_by_role("searchbox")).to_be_focused()
    assert page.evaluate("window.same")
    assert "q=on+fire" in page.get_by_role("link", name="Export", exact=True).get_attribute("href")


def test_taking_a_filter_out_updates_the_form(open_page, desk, bob):
    page = open_page("/tickets/?q=number&priority=low", person=bob)
    page.get_by_role("link", name="Remove the filter Search").click()
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page).to_have_url(re.compile(r"/tickets/\?priority=low$"))
    expect(page.locator("#count-priority")).to_have_text("1")


def test_a_filter_changed_in_a_view_can_be_saved_to_it(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    page.get_by_role("link", name="High ones").click()
    expect(page.locator("#results tbody tr")).to_have_count(2)
    expect(page.locator("#change-view")).to_have_count(0)
    page.locator("#filters").get_by_text("Status", exact=True).click()
    page.get_by_label("On hold").check()
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Save changes to the view").click()
    page.get_by_label("Name").fill("High, on hold")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="High, on hold 1")).to_have_attribute(
        "aria-current", "page"
    )
    expect(page.locator("#change-view")).to_have_count(0)


def test_going_back_shows_what_was_there(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    expect(page.locator("#results tbody tr")).to_have_count(5)
    page.get_by_role("link", name="Mine").click()
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.go_back()
    expect(page.locator("#results tbody tr")).to_have_count(5)
    expect(page.locator("#view-all")).to_have_attribute("aria-current", "page")


def test_a_change_leaves_the_reply_being_written_alone(open_page, desk, bob):
    page = open_page(f"/tickets/{desk.pk}/", person=bob)
    page.get_by_label("Internal note").check()
    page.get_by_label("Your text").fill("Half a sent")
    page.get_by_label("Priority").select_option("urgent")
    expect(page.locator(".ticket-marks")).to_contain_text("Urgent")
    expect(page.get_by_label("Your text")).to_have_value("Half a sent")
    expect(page.get_by_label("Internal note")).to_be_checked()
    expect(page.locator("#announcer")).to_have_text("The priority is changed.")
    page.get_by_role("button", name="Add internal note").click()
    expect(page.locator(".comment.is-note", has_text="Half a sent")).to_be_visible()
    expect(page.get_by_label("Your text")).to_have_value("")


def test_a_conflict_on_the_page_is_decided_there(open_page, desk, alice, bob):
    page = open_page(f"/tickets/{desk.pk}/", person=bob)
    desk.set_status("on_hold", by=alice)
    page.get_by_label("Status").select_option("open")
    page.get_by_role("button", name="Save mine anyway").click()
    expect(page.locator(".ticket-marks")).to_contain_text("Open")
    desk.refresh_from_db()
    assert desk.status == "open"


def test_a_preset_sets_the_due_date(open_page, desk, bob):
    page = open_page(f"/tickets/{desk.pk}/", person=bob)
    page.get_by_role("button", name="tomorrow 9:00").click()
    expect(page.locator("#announcer")).to_have_text("The due date is changed.")
    desk.refresh_from_db()
    assert (desk.due_at.hour, desk.due_at.minute) == (9, 0)


def test_presets_fill_the_field_of_a_new_ticket(open_page, desk, bob):
    page = open_page("/tickets/new/", person=bob)
    page.get_by_role("button", name="tomorrow 9:00").click()
    expect(page.get_by_label("Due", exact=True)).to_have_value(re.compile("T09:00$"))


def test_a_double_click_opens_one_ticket(open_page, desk, bob):
    before = Ticket.objects.count()
    page = open_page("/tickets/new/", person=bob)
    page.get_by_label("Subject").fill("Only once")
    page.get_by_role("button", name="Open ticket").dblclick()
    expect(page.get_by_role("heading", name="Only once")).to_be_visible()
    assert Ticket.objects.count() == before + 1


def test_only_the_chosen_teams_people_are_offered(open_page, desk, alice, bob, billing, charlie):
    billing.memberships.create(user=bob, role="agent")
    page = open_page("/tickets/new/", person=bob)
    page.get_by_label("Team").select_option(label="Billing")
    offered = page.locator("#id_assignee optgroup:not([disabled])")
    expect(offered).to_have_count(1)
    expect(offered).to_have_attribute("label", "Billing")


def test_the_bell_rises_and_says_so(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    bell = page.locator("#bell")
    expect(bell).to_have_attribute("aria-label", re.compile("unread"))
    Notification.objects.notify([bob], kind="reminder", cause="new", ticket=desk, text="Printer")
    toast = page.get_by_role("status").get_by_role("link", name="Reminder: “Printer” is due")
    expect(toast).to_be_visible()


def test_changes_can_be_hidden_and_stay_so(open_page, desk, bob):
    page = open_page(f"/tickets/{desk.pk}/", person=bob)
    change = page.locator(".timeline-change", has_text="Bob Berg")
    expect(change).to_be_visible()
    page.get_by_label("Only comments").check()
    expect(change).to_be_hidden()
    page.reload()
    expect(change).to_be_hidden()
    expect(page.get_by_label("Only comments")).to_be_checked()


def test_the_theme_is_the_persons(open_page, desk, bob):
    bob.theme = "dark"
    bob.save()
    page = open_page("/tickets/", person=bob, theme="light")
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"


def test_a_reply_survives_an_ended_session(open_page, desk, bob):
    page = open_page(f"/tickets/{desk.pk}/", person=bob)
    page.get_by_label("Your text").fill("A long answer")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Send reply").click()
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_label("Your text")).to_have_value("A long answer")
    page.get_by_role("button", name="Send reply").click()
    expect(page.locator(".comment-body", has_text="A long answer")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Your text")).to_have_value("")


def test_the_back_button_leads_to_the_whole_list(open_page, desk, bob):
    page = open_page("/tickets/", person=bob)
    page.get_by_role("searchbox").press_sequentially("printer")
    expect(page).to_have_url(re.compile("q=printer$"))
    page.get_by_role("link", name="Printer on fire").click()
    expect(page.get_by_role("heading", name="Printer on fire")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Tickets")).to_be_visible()
    expect(page.locator(".topbar")).to_be_visible()
    expect(page.locator("#results tbody tr")).to_have_count(1)


def test_anothers_change_is_announced_and_shown(open_page, desk, alice, bob):
    page = open_page(f"/tickets/{desk.pk}/", person=bob)
    page.get_by_label("Your text").fill("Half a sent")
    desk.comment(by=alice, body="I have it already.")
    page.get_by_role("link", name="Show the changes").click()
    expect(page.locator(".comment-body", has_text="I have it already.")).to_be_visible()
    expect(page.get_by_label("Your text")).to_have_value("Half a sent")


def test_taking_the_others_value_in_a_conflict(open_page, desk, alice, bob):
    page = open_page(f"/tickets/{desk.pk}/edit/", person=bob)
    desk.edit(by=alice, changes={"subject": "Alice's subject"})
    page.get_by_label("Subject").fill("Bob's subject")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Subject")).to_have_value("Bob's subject")
    page.get_by_role("button", name="Use this value").click()
    expect(page.get_by_label("Subject")).to_have_value("Alice's subject")
