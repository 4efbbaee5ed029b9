"""Exports of any format, and many tickets of every kind."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from exports.models import Export
from tickets.models import Ticket

TEXTS = [
    "Printer on fire",
    'say "hello", twice; or\tthrice | more',
    "line\nfeed and\r\nboth\rand one alone",
    "\\. and \\n, 100% %s {} ${x}",
    "工单：打印机 🔥 ﷽ e\u0301 \u200b 👩‍👩‍👧",
    "שלום עולם, مرحبا \u202eabc\u202c",
    " blanks around ",
    "=1+1",
    '=HYPERLINK("http://evil.example","x")',
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "＝1",
    "＋1",
    "－1",
    "＠A1",
    " \u200b=1+1",
    "1=1",
    "2026-01-31",
    "007",
    "<r><t>not rich</t></r>",
    "<b>&amp;</b>",
    "_x000D_ is text",
    "bell \x07, escape \x1b, delete \x7f, nel \x85",
    "\ufffe and \uffff",
    "TRUE",
    "#N/A",
    "",
]
PEOPLE = [("=Rita", "Roe"), ("", ""), ("Žofie", "Nováková")]


@pytest.fixture
def asked():
    """``asked(user, file_format, columns, **choices)``: an export of all tickets."""

    def request(user, file_format, columns=None, filters=None, **choices):
        return Export.objects.request(
            by=user,
            filters={"sort": "id"} | (filters or {}),
            columns=columns,
            file_format=file_format,
            **choices,
        )

    return request


@pytest.fixture
def many(transactional_db, alice, bob, vera, support, billing):
    """``many(number)``: tickets with every text in every place, in both of alice's teams."""

    def create(number: int) -> list[Ticket]:
        billing.memberships.create(user=alice, role="viewer")
        for user, (first, last) in zip((alice, bob, vera), PEOPLE, strict=True):
            user.first_name, user.last_name = first, last
            user.save()
        support.name = "-Support"
        support.save()
        people = [alice, bob, vera, None]
        start = datetime(2026, 3, 28, 22, 30, 15, 250_000, tzinfo=UTC)

        def text(row, offset):
            return TEXTS[(row * 7 + offset) % len(TEXTS)]

        def moment(row, offset):
            return start + timedelta(minutes=17 * row + offset) if (row + offset) % 3 else None

        made = [
            Ticket(
                team=(support, billing)[row % 2],
                creator=people[row % 4],
                assignee=people[(row + 1) % 4],
                subject=text(row, 0),
                description=text(row, 1) * (1 + row % 3),
                status=Ticket._meta.get_field("status").choices[row % 5][0],
                priority=Ticket._meta.get_field("priority").choices[row % 4][0],
                requester_name=text(row, 2),
                requester_email=text(row, 3),
                tags=[text(row, each)[:50] for each in range(row % 3)],
                due_at=moment(row, 1),
                created_at=start + timedelta(seconds=row),
                updated_at=start + timedelta(seconds=2 * row),
                first_responded_at=moment(row, 2),
                resolved_at=moment(row, 3),
                closed_at=moment(row, 4),
            )
            for row in range(number)
        ]
        Ticket.objects.bulk_create(made, batch_size=1_000)
        return list(Ticket.objects.select_related("team", "creator", "assignee").order_by("pk"))

    return create


@pytest.fixture
def noisy(transactional_db, alice, support):
    """``noisy(number, bytes)``: tickets that do not shrink much, compressed or not. Returns ids."""

    def create(number: int, size: int) -> list[int]:
        dice = random.Random(7)
        made = [
            Ticket(team=support, creator=alice, subject="?", description=dice.randbytes(size).hex())
            for _ in range(number)
        ]
        return sorted(ticket.pk for ticket in Ticket.objects.bulk_create(made))

    return create


@pytest.fixture
def on_insert_of_a_chunk(transactional_db):
    """``on_insert_of_a_chunk(condition, statements)``: PL/pgSQL before a chunk is stored.

    Returns a function that takes it away again.
    """

    def remove():
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER IF EXISTS injected ON exports_exportchunk")
            cursor.execute("DROP FUNCTION IF EXISTS injected()")

    def arrange(condition: str, statements: str):
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE FUNCTION injected() RETURNS trigger LANGUAGE plpgsql AS"
                f" $$ BEGIN {statements}; RETURN NEW; END $$"
            )
            cursor.execute(
                "CREATE TRIGGER injected BEFORE INSERT ON exports_exportchunk FOR EACH ROW"
                f" WHEN ({condition}) EXECUTE FUNCTION injected()"
            )
        return remove

    yield arrange
    remove()


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder that temporary files go to; nothing else is in it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder
