"""A real Chromium in front of a live server."""

from datetime import time, timedelta

import pytest
from django.utils import timezone

from exports.models import ScheduledExport
from tasks.worker import run_job
from tickets.models import BulkEdit, Notification, SavedView, Ticket


@pytest.fixture
def open_page(live_server, chromium, client):
    """``open_page(path, person=, width=, theme=)``: a page in a fresh browser profile.

    A console error, a script's error or a violation of the content policy fails the test.
    """
    problems, contexts = [], []

    def note(message):
        if "status of 409" in message.text or "status of 422" in message.text:
            return  # Chromium logs what is refused: changed faster by another, or bad input
        if message.type == "error" or "Content Security Policy" in message.text:
            problems.append(f"{message.text} at {message.location}")

    def open_path(path, person=None, width=1280, theme="light", script=True):
        context = chromium.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            java_script_enabled=script,
            locale="en-US",
            reduced_motion="reduce",
        )
        contexts.append(context)
        if person is not None:
            client.force_login(person)
            session = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path)
        return page

    yield open_path
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def desk(transactional_db, alice, bob, vera, support):
    """A desk with some work on it; returns the ticket whose page is looked at."""
    now = timezone.now()
    for n, (priority, status) in enumerate(
        [("low", "open"), ("normal", "pending"), ("high", "on_hold"), ("urgent", "closed")]
    ):
        Ticket.objects.open(
            by=alice,
            team=support,
            subject=f"Ticket number {n} with a subject that takes some room",
            priority=priority,
            status=status,
            requester_name="Mara Lindqvist",
            tags=["vpn", "very-long-tag-that-takes-some-room"],
            due_at=now + timedelta(hours=5 * n - 5),
        )
    ticket = Ticket.objects.open(
        by=alice,
        team=support,
        subject="Printer on fire",
        description="It burns.\n\n" + "Averyveryverylongword" * 12,
        assignee=bob,
        requester_name="Mara Lindqvist",
        requester_email="mara.with.a.very.long.address@example.org",
        tags=["fire"],
        due_at=now - timedelta(days=1),
    )
    ticket.comment(by=bob, body="Thank you for the report.")
    ticket.comment(by=alice, body="Rack 4 again.", is_public=False)
    ticket.set_status("pending", by=bob)
    Notification.objects.notify(
        [bob], kind="export_ready", cause="export", text="1200", url="/exports/"
    )
    ScheduledExport.objects.schedule(
        bob,
        name="Averyveryverylongname" * 4,
        filters={"status": ["open"]},
        rhythm="weekly",
        weekdays=[1, 5],
        time_of_day=time(8),
    ).run_now(by=bob)
    paused = ScheduledExport.objects.schedule(
        bob, name="Paused", rhythm="monthly", day_of_month=31, time_of_day=time(8)
    )
    paused.pause(reason="The filters do not fit any more: Team: Select a valid choice.")
    for name, owner, team in (("High ones", bob, None), ("Rack 4", alice, support)):
        SavedView.objects.save_view(
            owner,
            name=name,
            team=team,
            filters={"priority": ["high", "urgent"]},
            zone="UTC",
            columns=["id", "subject", "requester_name", "tags", "created_at", "due_at"],
        )
    return ticket


def paths(ticket) -> dict[str, str]:
    """The pages that are looked at as bob."""
    scheduled = ScheduledExport.objects.latest("pk")
    seen = {each.pk: each.version for each in Ticket.objects.order_by("pk")} | {10**9: 1}
    bulk_edit = BulkEdit.objects.request(ticket.assignee, seen, {"priority": "high"})
    run_job(bulk_edit.pk, 0)
    view = SavedView.objects.get(name="High ones")
    return {
        "list": "/tickets/",
        "filtered list": "/tickets/?q=number&status=open&status=pending&created_after=x",
        "empty list": "/tickets/?q=nothing",
        "saved view": f"/tickets/?view={view.pk}",
        "changed view": f"/tickets/?view={view.pk}&q=&columns=tags",
        "saved views": "/tickets/views/",
        "new view": "/tickets/views/new/?status=melted&priority=high",
        "edit view": f"/tickets/views/{view.pk}/edit/",
        "ticket": f"/tickets/{ticket.pk}/",
        "bulk change": "/tickets/bulk/?all=1",
        "result of a bulk change": f"/tickets/bulk/{bulk_edit.pk}/",
        "new": "/tickets/new/",
        "edit": f"/tickets/{ticket.pk}/edit/",
        "dashboard": "/dashboard/",
        "notifications": "/notifications/",
        "profile": "/accounts/profile/",
        "exports": "/exports/",
        "new export": "/exports/new/",
        "scheduled exports": "/exports/schedules/",
        "new scheduled export": "/exports/schedules/new/?status=open",
        "edit scheduled export": f"/exports/schedules/{scheduled.pk}/edit/",
    }
