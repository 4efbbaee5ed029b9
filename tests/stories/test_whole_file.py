"""A whole real file: imported, made due, reminded of by real processes, exported, compared.

``TEAMDESK_SAMPLE_CSV`` names the file: a table of customer support tickets with the columns that
``tickets/mappings/customer_support.toml`` maps.
"""

import csv
import io
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command

from tasks.models import BackgroundTask, TaskAttempt, TaskStatus
from tickets.models import EventKind, Notification, NotificationKind, Ticket, TicketEvent
from tickets.models.ticket import LIVE_STATUSES

SAMPLE = os.environ.get("TEAMDESK_SAMPLE_CSV")

pytestmark = [
    pytest.mark.processes,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not SAMPLE, reason="TEAMDESK_SAMPLE_CSV names no file"),
]

SHANGHAI = ZoneInfo("Asia/Shanghai")
FORMULA_STARTS = "=+-@＝＋－＠\t\r\n"


def test_every_ticket_of_the_file_is_reminded_of_once_and_exported_whole(
    processes, visitor, alice, bob, support, wait_until
):
    alice.time_zone = SHANGHAI.key
    for person in (alice, bob):
        person.mail_reminder = person.mail_assigned = False  # thousands of mails are not the story
        person.save()
    with Path(SAMPLE).open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    call_command("import_tickets", SAMPLE, team="support", verbosity=0)
    assert Ticket.objects.count() == len(lines) > 0

    live = list(Ticket.objects.filter(status__in=LIVE_STATUSES))
    past = datetime.now(UTC) - timedelta(minutes=5)
    for ticket in live:
        ticket.edit(by=alice, changes={"assignee": bob, "due_at": past})
    reminders = BackgroundTask.objects.filter(kind="REMINDER")
    assert reminders.filter(status=TaskStatus.WAITING).count() == len(live)

    for queue in ("short", "short", "long"):
        processes.worker(queue)
    processes.beat()
    done = reminders.filter(status=TaskStatus.COMPLETED)
    wait_until(lambda: done.count() == len(live), "every reminder is delivered", 600)
    told = Notification.objects.filter(kind=NotificationKind.REMINDER)
    assert Counter(told.values_list("ticket", flat=True)) == Counter(t.pk for t in live)
    reminded = TicketEvent.objects.filter(kind=EventKind.REMINDED)
    assert Counter(reminded.values_list("ticket", flat=True)) == Counter(t.pk for t in live)
    assert TaskAttempt.objects.filter(task__in=reminders).count() == len(live)

    _, address = processes.web()
    agent = visitor(address, "alice")
    export = agent.submit("/exports/new/", as_json=True).json()
    state = wait_until(
        lambda: (
            found
            if (found := agent.ask(f"/exports/{export['id']}/"))["status"] == "COMPLETED"
            else None
        ),
        "the export completes",
        300,
    )
    assert state["rows"] == len(lines)
    file = agent.see(f"/exports/{export['id']}/download/").content
    assert len(file) == state["bytes"]
    assert file.startswith(b"\xef\xbb\xbf") and file.count(b"\xef\xbb\xbf") == 1
    rows = list(csv.reader(io.StringIO(file.decode("utf-8-sig"), newline="")))
    assert rows[0] == [
        *("ID", "Team", "Subject", "Description", "Status", "Priority"),
        *("Requester name", "Requester e-mail", "Creator", "Assignee", "Tags"),
        *(
            f"{title} (Asia/Shanghai)"
            for title in ("Due", "Created", "Updated", "First response", "Resolved", "Closed")
        ),
    ]
    stored = Ticket.objects.select_related("team", "creator", "assignee").in_bulk()
    assert len(rows) - 1 == len(stored)
    different = [
        (row[0], shown, expected)
        for row in rows[1:]
        for shown, expected in zip(row, cells_of(stored.pop(int(row[0]))), strict=True)
        if shown != expected
    ]
    assert different == []
    assert stored == {}


def cells_of(ticket: Ticket) -> list[str]:
    """What the file must say of this ticket, made here from the model and nothing else."""
    return [
        str(ticket.pk),
        text(ticket.team.name),
        text(ticket.subject),
        text(ticket.description),
        str(ticket.get_status_display()),
        str(ticket.get_priority_display()),
        text(ticket.requester_name),
        text(ticket.requester_email),
        text(ticket.creator.display_name if ticket.creator else ""),
        text(ticket.assignee.display_name if ticket.assignee else ""),
        text(", ".join(ticket.tags)),
        *(
            moment.astimezone(SHANGHAI).strftime("%Y-%m-%d %H:%M:%S") if moment else ""
            for moment in (
                *(ticket.due_at, ticket.created_at, ticket.updated_at),
                *(ticket.first_responded_at, ticket.resolved_at, ticket.closed_at),
            )
        ),
    ]


def text(value: str) -> str:
    return (
        f"'{value}" if value.lstrip(" ")[:1] and value.lstrip(" ")[0] in FORMULA_STARTS else value
    )
