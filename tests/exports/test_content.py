"""What is in the file: every cell as the database has it, made safe for spreadsheets."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from exports import columns
from exports.models import Export
from tests.exports.conftest import content_of, records_of, table_of
from tickets.models import Ticket

pytestmark = pytest.mark.django_db(transaction=True)


def asked(user, keys=None, **filters):
    return Export.objects.request(by=user, filters={"sort": "id"} | filters, columns=keys)


def test_it_has_a_byte_order_mark_once_and_ends_every_record_with_crlf(alice, ticket, run):
    ticket("First"), ticket("Second")
    content = content_of(run(asked(alice, ["subject", "status"])))
    assert content == b"\xef\xbb\xbfSubject,Status\r\nFirst,open\r\nSecond,open\r\n"


def test_it_has_only_a_header_when_nothing_fits(alice, support, run):
    export = run(asked(alice, ["id", "due_at"], q="nothing like it"))
    assert content_of(export) == b"\xef\xbb\xbfID,Due (UTC)\r\n"
    assert (export.rows, export.size, export.team_ids) == (0, len(content_of(export)), [])


def test_it_has_every_column_in_the_contracts_order(alice, bob, ticket, support, run):
    at = datetime(2026, 5, 4, 3, 2, 1, 999_000, tzinfo=UTC)
    stored = ticket(
        "Printer on fire",
        description="It burns.",
        status="on_hold",
        priority="urgent",
        requester_name="Rita Roe",
        requester_email="rita@example.org",
        assignee=bob,
        tags=["printer", "fire, big"],
        due_at=at,
        created_at=at + timedelta(days=1),
        updated_at=at + timedelta(days=2),
        first_responded_at=at + timedelta(days=3),
        resolved_at=at + timedelta(days=4),
        closed_at=at + timedelta(days=5),
    )
    assert table_of(run(asked(alice))) == [
        [
            "ID",
            "Team",
            "Subject",
            "Description",
            "Status",
            "Priority",
            "Requester name",
            "Requester e-mail",
            "Creator",
            "Assignee",
            "Tags",
            "Due (UTC)",
            "Created (UTC)",
            "Updated (UTC)",
            "First response (UTC)",
            "Resolved (UTC)",
            "Closed (UTC)",
        ],
        [
            str(stored.pk),
            "Support",
            "Printer on fire",
            "It burns.",
            "on hold",
            "urgent",
            "Rita Roe",
            "rita@example.org",
            "Alice Ames",
            "Bob Berg",
            "printer, fire, big",
            "2026-05-04 03:02:01",
            "2026-05-05 03:02:01",
            "2026-05-06 03:02:01",
            "2026-05-07 03:02:01",
            "2026-05-08 03:02:01",
            "2026-05-09 03:02:01",
        ],
    ]


def test_it_leaves_cells_empty_where_there_is_nothing(alice, ticket, run):
    ticket("Bare", creator=None)
    (record,) = records_of(run(asked(alice)))
    empty = {key for key, cell in record.items() if cell == ""}
    assert empty == set(columns.chosen(None)) - {
        "id",
        "team",
        "subject",
        "status",
        "priority",
        "created_at",
        "updated_at",
    }


def test_it_names_a_person_without_a_name_by_the_user_name(alice, root, ticket, run):
    ticket(assignee=root)
    (record,) = records_of(run(asked(alice, ["assignee"])))
    assert record == {"assignee": root.display_name} == {"assignee": "root"}


NASTY = [
    "plain",
    'say "hello", twice',
    "comma, semicolon; pipe|",
    "line\nfeed and\r\nboth",
    "\\.",
    "100% %s %(x)s {} \\n",
    "工单：打印机 🔥 ﷽ e\u0301 \u200b",
    "trailing space ",
    '"',
    "''",
    "O'Brien; DROP TABLE tickets_ticket; --",
    "a" * 100_000,
]


def test_it_reads_back_exactly_what_the_database_has(alice, ticket, run):
    for text in NASTY:
        ticket(text[:200], description=text, requester_name=text[:200], tags=[text[:50]])
    records = records_of(run(asked(alice)))
    stored = Ticket.objects.order_by("pk")
    assert [record["description"] for record in records] == NASTY
    for record, row in zip(records, stored, strict=True):
        assert record["id"] == str(row.pk)
        assert record["subject"] == row.subject
        assert record["requester_name"] == row.requester_name
        assert record["tags"] == ", ".join(row.tags)


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "＝1",
        "＋1",
        "－1",
        "＠A1",
        "  =1+1",
        "\ufeff=1",
        " \u200b@x",
    ],
)
def test_it_neutralises_what_a_spreadsheet_would_run(alice, ticket, support, run, text):
    support.name = text
    support.save()
    alice.first_name, alice.last_name = text, ""
    alice.save()
    ticket(text, description=text, requester_name=text, requester_email=text, tags=[text])
    (record,) = records_of(run(asked(alice)))
    name = alice.display_name  # without surrounding spaces, which are not part of a name
    guarded = "'" + text
    assert {record[key] for key in ("team", "subject", "description", "tags")} == {guarded}
    assert {record[key] for key in ("requester_name", "requester_email")} == {guarded}
    assert record["creator"].lstrip("'").strip() == name
    assert record["creator"][0] not in "=+-@＝＋－＠\t\r\n "


@pytest.mark.parametrize("text", ["1=1", "a+b", "5-4", "me@example.org", "'=1", "#1", "1 -1"])
def test_it_leaves_other_text_alone(alice, ticket, run, text):
    ticket(text)
    assert records_of(run(asked(alice, ["subject"]))) == [{"subject": text}]


def test_it_holds_only_what_the_filters_select(alice, ticket, billing, run):
    wanted = {
        str(ticket(f"Fire {number}", status=status, priority="high").pk)
        for number, status in enumerate(["open", "pending"])
    }
    ticket("Fire", status="closed", priority="high")
    ticket("Fire", status="open", priority="low")
    ticket("Water", status="open", priority="high")
    ticket("Fire", status="open", priority="high", team=billing)
    export = run(asked(alice, q="fire", status=["open", "pending"], priority=["high"]))
    assert {record["id"] for record in records_of(export)} == wanted
    assert export.rows == 2


def test_it_keeps_the_lists_order(alice, ticket, run):
    for subject in ("b", "C", "a"):
        ticket(subject)
    export = run(asked(alice, ["subject"], sort="-subject"))
    assert [record["subject"] for record in records_of(export)] == ["C", "b", "a"]


@pytest.mark.parametrize(
    ("zone", "moment", "shown"),
    [
        # Spring: 01:59:59 is followed by 03:00:00.
        ("Europe/Berlin", datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), "2026-03-29 01:59:59"),
        ("Europe/Berlin", datetime(2026, 3, 29, 1, 0, 0, tzinfo=UTC), "2026-03-29 03:00:00"),
        # Autumn: the hour from 02:00 comes twice.
        ("Europe/Berlin", datetime(2026, 10, 25, 0, 59, 59, tzinfo=UTC), "2026-10-25 02:59:59"),
        ("Europe/Berlin", datetime(2026, 10, 25, 1, 0, 0, tzinfo=UTC), "2026-10-25 02:00:00"),
        ("America/St_Johns", datetime(2026, 7, 1, 12, 0, tzinfo=UTC), "2026-07-01 09:30:00"),
        ("Asia/Shanghai", datetime(2026, 12, 31, 16, 0, tzinfo=UTC), "2027-01-01 00:00:00"),
        # China had summer time until 1991.
        ("Asia/Shanghai", datetime(1990, 7, 1, 0, 0, tzinfo=UTC), "1990-07-01 09:00:00"),
    ],
)
def test_it_shows_times_as_the_requesters_clocks_do(alice, ticket, run, zone, moment, shown):
    alice.time_zone = zone
    alice.save()
    ticket(due_at=moment)
    table = table_of(run(asked(alice, ["due_at"])))
    assert table == [[f"Due ({zone})"], [shown]]
    assert shown == moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")


def test_it_reads_days_in_filters_in_the_requesters_zone(alice, ticket, run):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    ticket("late on the 4th", due_at=datetime(2026, 5, 4, 15, 59, tzinfo=UTC))
    ticket("early on the 5th", due_at=datetime(2026, 5, 4, 16, 0, tzinfo=UTC))
    export = run(asked(alice, ["subject"], due_after="2026-05-05"))
    assert [record["subject"] for record in records_of(export)] == ["early on the 5th"]


def test_it_speaks_the_requesters_language(alice, ticket, run, monkeypatch):
    """The words come from the language stored with the request, not from the worker's."""
    from django.utils.translation import trans_real

    chinese = trans_real.translation("zh-hans")
    words = {"Status": "状态", "on hold": "搁置", "urgent": "紧急"}
    real = chinese.gettext
    monkeypatch.setattr(chinese, "gettext", lambda text: words.get(text) or real(text))
    alice.language = "zh-hans"
    alice.save()
    ticket(status="on_hold", priority="urgent")
    table = table_of(run(asked(alice, ["status", "priority"])))
    assert table[0][0] == "状态"
    assert table[1] == ["搁置", "紧急"]


def test_it_spans_chunks_without_a_seam(alice, ticket, run, monkeypatch):
    monkeypatch.setattr("exports.jobs.CHUNK_BYTES", 300)
    for number in range(200):
        ticket(f"Ticket {number}", description="ü\n" * 20)
    export = run(asked(alice, ["subject", "description"]))
    assert export.chunks.count() > 10
    assert export.size == len(content_of(export))
    assert content_of(export).count(b"\xef\xbb\xbf") == 1
    assert [record["subject"] for record in records_of(export)] == [
        f"Ticket {number}" for number in range(200)
    ]
