"""Django's admin and ours under the strict content security policy, in a real browser."""

import os
import uuid

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from tasks.models import BackgroundTask, DispatcherStatus, TaskAttempt
from tickets.models import Ticket

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def violations():
    return []


@pytest.fixture
def open_page(live_server, chromium, client, root, violations):
    """``open_page(path)``: root's page, whose policy violations and errors are collected."""
    client.force_login(root)
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.add_cookies(
        [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}]
    )
    page = context.new_page()

    def note(message):
        if message.type == "error" or "Content Security Policy" in message.text:
            violations.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: violations.append(str(error)))

    def open_path(path):
        assert page.goto(live_server.url + path).ok
        return page

    yield open_path
    context.close()


@pytest.fixture
def tasks(make_task, bob, ticket):
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.08, {"scanned": 3, "enqueued": 3, "purged": 0})
    make_task("WAITING", ticket=ticket, owner=bob, dispatched_at=timezone.now())
    make_task("RUNNING", owner=bob, attempt=1, progress_done=1200, progress_total=5000)
    make_task("RUNNING", attempt=2, updated_at=timezone.now() - timezone.timedelta(minutes=9))
    make_task("COMPLETED", attempt=1)
    make_task("CANCELLED", last_error="Cancelled by alice.")
    failed = make_task(
        "FAILED", ticket=ticket, owner=bob, attempt=7, last_error="TimeoutError: no answer in 20 s",
        payload={"export": 12, "columns": ["id", "subject"]}, dedup_key="report:2026-12-01",
    )  # fmt: skip
    for number in (6, 7):
        TaskAttempt.objects.create(
            task=failed, run=0, attempt=number, execution_id=uuid.uuid4(), outcome="failed",
            finished_at=timezone.now(), worker="short@desk1", error="TimeoutError: no answer",
            traceback='  File "tasks/worker.py", line 71, in _run\n    effect = handler(task)\n'
            "TimeoutError: no answer in 20 s",
        )  # fmt: skip
    return failed


def shoot(page, name):
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_the_ledger_works_under_the_policy(open_page, tasks, violations):
    page = open_page(reverse("admin:tasks_backgroundtask_changelist"))
    shoot(page, "ledger-list")
    page.get_by_text("How to read the ledger").click()
    expect(page.get_by_text("is not stuck")).to_be_visible()
    page.locator("#action-toggle").check()
    page.select_option("select[name=action]", "retry")
    page.click("button[name=index]")
    expect(page.get_by_text("To be run again:")).to_be_visible()
    shoot(page, "ledger-retried")
    assert BackgroundTask.objects.filter(run=1).count() == 2
    assert violations == []


def test_a_task_is_retried_with_its_button(open_page, tasks, violations):
    page = open_page(reverse("admin:tasks_backgroundtask_change", args=[tasks.pk]))
    shoot(page, "ledger-detail")
    page.get_by_role("button", name="Retry as a new run").click()
    expect(page.get_by_text(f"To be run again: #{tasks.pk}")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel the task")).to_be_visible()
    assert violations == []


def test_the_dark_theme_reaches_our_parts(open_page, tasks, violations):
    page = open_page(reverse("admin:tasks_backgroundtask_changelist"))
    while page.locator("html").get_attribute("data-theme") != "dark":
        page.locator("button.theme-toggle").first.click()
    shoot(page, "ledger-list-dark")
    colour = page.locator(".ledger-failed").evaluate("e => getComputedStyle(e).color")
    assert colour == "rgb(255, 154, 154)"
    assert violations == []


def test_a_ticket_is_edited_with_date_picker_and_autocomplete(open_page, ticket, bob, violations):
    page = open_page(reverse("admin:tickets_ticket_change", args=[ticket.pk]))
    page.locator(".field-due_at .date-icon").click()
    page.locator(".calendarbox").get_by_text("Tomorrow").click()
    page.locator(".field-due_at .clock-icon").click()
    page.locator(".clockbox").get_by_text("Noon").click()
    page.locator("[aria-labelledby=select2-id_assignee-container]").click()
    page.locator(".select2-search__field").fill("bob")
    page.locator(".select2-results__option", has_text="bob").click()
    shoot(page, "ticket-form")
    page.locator("input[name=_save]").click()
    page.wait_for_url("**/admin/tickets/ticket/")
    ticket = Ticket.objects.get(pk=ticket.pk)
    assert ticket.assignee == bob
    assert ticket.due_at.hour == 12
    assert violations == []


def test_the_other_pages_keep_to_the_policy(open_page, bob, support, violations):
    for path in (
        reverse("admin:index"),
        reverse("admin:tickets_user_change", args=[bob.pk]),
        reverse("admin:auth_user_password_change", args=[bob.pk]),
        reverse("admin:tickets_user_add"),
        reverse("admin:tickets_team_change", args=[support.pk]),
        reverse("admin:tickets_team_add"),
        reverse("admin:tickets_ticket_add"),
        reverse("admin:tickets_ticket_changelist"),
        reverse("admin:tickets_notification_changelist"),
        reverse("admin:auth_group_add"),
        reverse("admin:tasks_dispatcherstatus_changelist"),
    ):
        page = open_page(path)
        page.wait_for_load_state("networkidle")
        shoot(page, path.strip("/").replace("/", "-"))
        assert violations == [], path
