"""Every column of every kind of row, for few rows and for many: each cell as the tables have it."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from exports import columns
from exports.models import Export, RowKind
from tests.exports import stock
from tests.exports.conftest import table_of
from tests.exports.test_content import NASTY
from tickets.models import Comment, EventKind, Ticket, TicketEvent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]
ZONE = ZoneInfo("America/New_York")
START = datetime(2026, 10, 31, 1, 2, 3, 456_000, tzinfo=UTC)
TEXTS = [*NASTY[:-1], "=1+1", "＝1", " @x", "-5", "\t+1", "long " * 500]


def fill(count: int, alice, bob, support, row_kind) -> None:
    """So many tickets, or a third of them with so many messages or changes."""

    def text(number: int, most: int | None = None) -> str:
        return TEXTS[number % len(TEXTS)][:most]

    def at(number: int):
        return START + timedelta(minutes=number)

    tickets = Ticket.objects.bulk_create(
        Ticket(
            team=support,
            subject=text(n, 200),
            description=text(n + 1),
            status=["open", "on_hold", "closed"][n % 3],
            priority=["low", "urgent"][n % 2],
            requester_name=text(n + 2, 200),
            requester_email=["", "rita@example.org"][n % 2],
            creator=[alice, None][n % 2],
            assignee=[None, bob, alice][n % 3],
            tags=[text(n, 50), "second"][: n % 3],
            created_at=at(n),
            updated_at=at(n + 1),
            **{
                key: [None, at(n + 2)][n % 2]
                for key in ("due_at", "first_responded_at", "resolved_at", "closed_at")
            },
        )
        for n in range(count if row_kind == RowKind.TICKETS else max(1, count // 3))
    )
    if row_kind == RowKind.CONVERSATION:
        Comment.objects.bulk_create(
            Comment(
                ticket=tickets[n % len(tickets)],
                author=[alice, None, bob][n % 3],
                author_text=text(n, 200),
                body=text(n + 3),
                is_public=n % 2 == 0,
                created_at=at(-n),
            )
            for n in range(count)
        )
    elif row_kind == RowKind.HISTORY:
        TicketEvent.objects.bulk_create(
            event_of(n, tickets[n % len(tickets)], [alice, None, bob][n % 3], text, at(n))
            for n in range(count)
        )


def event_of(number: int, ticket, actor, text, at) -> TicketEvent:
    told = {"old_text": text(number), "new_text": text(number + 1)}
    kinds = [
        {"kind": EventKind.CHANGED, "field": "subject"} | told,
        {"kind": EventKind.CHANGED, "field": "status", "old_value": "open"} | told,
        {"kind": EventKind.CHANGED, "field": "due_at", "new_value": at.isoformat()} | told,
        {"kind": EventKind.CREATED} | told,
        {"kind": EventKind.REMINDED, "reason": "due date reached"} | told,
    ]
    who = {"actor": actor, "actor_text": text(number + 2, 200)}
    return TicketEvent(ticket=ticket, version=1, at=at, **who, **kinds[number % len(kinds)])


@pytest.mark.parametrize("row_kind", RowKind.values)
@pytest.mark.parametrize("count", [10, 10_000])
def test_every_cell_is_what_the_tables_have(alice, bob, support, run, row_kind, count):
    fill(count, alice, bob, support, row_kind)
    keys = list(columns.COLUMNS_OF[row_kind])
    export = run(
        Export.objects.request(
            alice, {"sort": "-created"}, keys, row_kind=row_kind, time_zone=ZONE.key
        )
    )
    header, *rows = table_of(export)
    assert header == [each.header(ZONE.key) for each in columns.selected(keys, row_kind).values()]
    assert len(rows) == export.rows == count

    tickets = Ticket.objects.select_related("team", "creator", "assignee").in_bulk()
    newest_first = sorted(tickets, key=lambda pk: (tickets[pk].created_at, pk), reverse=True)
    expected = [
        cells_of(tickets[pk], each, row_kind)
        for pk, each in stock.rows_by_hand(newest_first, row_kind)
    ]
    assert set(expected[0]) == set(keys)
    different = [
        (number, key, cell, cells[key])
        for number, (row, cells) in enumerate(zip(rows, expected, strict=True))
        for key, cell in zip(keys, row, strict=True)
        if cell != cells[key]
    ]
    assert different == []


def cells_of(ticket: Ticket, each, row_kind: str) -> dict[str, str]:
    """What the file must say, made here from the models and nothing else."""
    cells = {
        "id": str(ticket.pk),
        "team": ticket.team.name,
        "subject": guarded(ticket.subject),
        "description": guarded(ticket.description),
        "status": str(ticket.get_status_display()),
        "priority": str(ticket.get_priority_display()),
        "requester_name": guarded(ticket.requester_name),
        "requester_email": ticket.requester_email,
        "creator": ticket.creator.display_name if ticket.creator else "",
        "assignee": ticket.assignee.display_name if ticket.assignee else "",
        "tags": guarded(", ".join(ticket.tags)),
    }
    for key in ("due_at", "created_at", "updated_at"):
        cells |= time_of(key, getattr(ticket, key))
    for key in ("first_responded_at", "resolved_at", "closed_at"):
        cells |= time_of(key, getattr(ticket, key))
    if row_kind == RowKind.CONVERSATION:
        cells |= {
            "author": guarded(each.author.display_name if each.author else each.author_text),
            "visibility": "Reply" if each.is_public else "Internal note",
            "text": guarded(each.body),
            **time_of("written_at", each.created_at),
        }
    if row_kind == RowKind.HISTORY:
        after = each.new_display
        if each.field == "due_at":
            after = " ".join(time_of("at", each.at).values())
        words = {EventKind.CREATED: "opened the ticket"}
        cells = {key: cells[key] for key in ("id", "team", "subject")} | {
            **time_of("at", each.at),
            "actor": guarded(each.actor.display_name if each.actor else each.actor_text),
            "what": words.get(each.kind) or str(each.get_kind_display()),
            "field": each.field_display,
            "before": guarded(each.old_display),
            "after": guarded(after),
            "reason": each.reason,
        }
    return cells


def time_of(key: str, moment: datetime | None) -> dict[str, str]:
    local = moment and moment.astimezone(ZONE)
    return {
        key: local.strftime("%Y-%m-%d %H:%M:%S") if local else "",
        f"{key}_offset": "UTC" + local.isoformat()[-6:] if local else "",
    }


def guarded(text: str) -> str:
    return f"'{text}" if text.lstrip(" \u200b")[:1] in tuple("=+-@＝＋－＠\t\r\n") else text
