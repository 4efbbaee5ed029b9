"""One true story in a real browser on real processes, from log-in to an export run again."""

import csv
import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db.models.functions import Now
from playwright.sync_api import expect

from tasks.models import BackgroundTask
from tickets.models import Ticket

pytestmark = [
    pytest.mark.browser,
    pytest.mark.processes,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
]


def test_an_agent_works_from_the_log_in_to_an_expired_export(
    processes, chromium, bob, alice, support, tmp_path
):
    bob.time_zone = "Asia/Kathmandu"
    bob.save()
    for number in range(40):
        Ticket.objects.open(
            by=alice,
            team=support,
            subject=f"Monitor flickers on floor {number}",
            priority="low" if number % 2 else "urgent",
        )
    _, address = processes.web(TEAMDESK_FAST_PATH="True")
    for queue in ("short", "long"):
        processes.worker(queue)
    processes.beat()

    context = chromium.new_context(base_url=address, locale="en-US", accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(30_000)

    # Log in.
    page.goto("/")
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile("/tickets/$"))

    # Create a ticket that is due in seconds, as its author's clock shows it.
    page.goto("/tickets/new/")
    page.get_by_label("Subject").fill("The alarm on the roof rings")
    page.get_by_label("Priority").select_option("urgent")
    due = datetime.now(ZoneInfo("Asia/Kathmandu")) + timedelta(seconds=8)
    page.locator("[name=due_at]").fill(due.strftime("%Y-%m-%dT%H:%M:%S"))
    page.get_by_role("button", name="Open ticket").click()
    expect(page.get_by_role("heading", name="The alarm on the roof rings")).to_be_visible()
    ticket = Ticket.objects.get(subject="The alarm on the roof rings")
    assert abs((ticket.due_at - due).total_seconds()) < 1

    # The reminder appears in the badge without a reload.
    page.evaluate("window.same = true")
    expect(page.locator("#bell")).to_have_attribute("aria-label", "No unread notifications")
    expect(page.locator("#bell")).to_have_attribute("aria-label", "1 unread notification")
    assert page.evaluate("window.same")
    page.locator("#bell").click()
    expect(page.locator("main")).to_contain_text("The alarm on the roof rings")

    # Filter, then export what is shown.
    page.goto("/tickets/?priority=urgent&q=floor")
    expect(page.locator("#total")).to_have_text("20")
    page.get_by_role("link", name="Export", exact=True).click()
    page.locator("main form button[type=submit], main form button.btn-primary").first.click()
    expect(page).to_have_url(re.compile(r"/exports/\d+/$"))
    export = BackgroundTask.objects.get(kind="EXPORT")

    # Progress without a reload, until it can be downloaded.
    page.evaluate("window.same = true")
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    path = tmp_path / "tickets.csv"
    download.value.save_as(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    shown = Ticket.objects.filter(priority="urgent", subject__contains="floor")
    assert {row["Subject"] for row in rows} == set(shown.values_list("subject", flat=True))
    assert len(rows) == 20
    assert "Due (Asia/Kathmandu)" in rows[0]

    # It expires; the page says so and offers to run it again.
    BackgroundTask.objects.filter(pk=export.pk).update(expires_at=Now() - timedelta(seconds=1))
    answer = page.goto(f"/exports/{export.pk}/download/")
    assert answer.status == 410
    expect(page.locator("main")).to_contain_text("expired")
    page.get_by_role("button", name="Run again").click()
    expect(page).to_have_url(re.compile(rf"/exports/(?!{export.pk}/)\d+/$"))
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    context.close()
