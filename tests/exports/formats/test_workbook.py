"""XLSX: types, links, limits of Excel, and texts that stay texts."""

import zipfile
from datetime import UTC, datetime
from io import BytesIO
from xml.etree import ElementTree

import pytest
from django.db.models import F, Value
from openpyxl.utils.escape import unescape

from exports import jobs
from exports.columns import Column, Kind
from exports.columns.tickets import COLUMNS
from exports.formats import workbook
from tasks.models import TaskStatus
from tests.exports.conftest import content_of
from tests.exports.formats.conftest import TEXTS
from tests.exports.formats.reading import FORMULA_STARTS, sheets_of, workbook_of

pytestmark = pytest.mark.django_db(transaction=True)
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def cells_of(export) -> list[list]:
    """Below the header of the only sheet."""
    ((_, *rows),) = sheets_of(export)
    return rows


def sheet_xml(export, number=1) -> bytes:
    with zipfile.ZipFile(BytesIO(content_of(export))) as packed:
        return packed.read(f"xl/worksheets/sheet{number}.xml")


@pytest.mark.parametrize(
    "text",
    [*filter(None, TEXTS), "'=1", " \n ", "x" * 32_767],
    ids=lambda text: ascii(text)[1:20],
)
def test_a_text_stays_the_same_text(alice, ticket, asked, run, text):
    ticket("?", description=text, tags=[text[:50]])
    export = run(asked(alice, "xlsx", ["description", "tags"]))
    assert cells_of(export) == [[text, text[:50]]]
    (cell,), *_ = workbook_of(export)["Tickets"]["A2:A2"]
    assert cell.data_type == "s"  # and no formula, date, number, boolean or error


@pytest.mark.parametrize(
    ("text", "quoted"),
    [*((start + "1", True) for start in FORMULA_STARTS), ("1=1", False), ("a", False)],
)
def test_a_text_like_a_formula_stays_a_text_when_its_cell_is_edited(
    alice, ticket, asked, run, text, quoted
):
    """What the apostrophe is in Excel: a property of the cell, not a part of its text."""
    ticket(text)
    cell = workbook_of(run(asked(alice, "xlsx", ["subject"])))["Tickets"]["A2"]
    assert (unescape(cell.value), bool(cell.quotePrefix)) == (text, quoted)


def test_no_ticket_writes_xml_into_the_sheet(alice, ticket, asked, run):
    """XlsxWriter would take this for rich text of its own."""
    text = '<r><t>a</t></r></is></c><c r="B2" t="str"><f>1+1</f><v>2</v></c><r></r>'
    ticket("?", description=text)
    export = run(asked(alice, "xlsx", ["description"]))
    assert cells_of(export) == [[text]]
    cells = ElementTree.fromstring(sheet_xml(export)).findall(f".//{MAIN}c")
    assert [cell.get("r") for cell in cells] == ["A1", "A2"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 32_768, "x" * 32_735 + "… [cut: 32768 characters in all]"),
        ("🔥" * 16_384, "🔥" * 16_367 + "… [cut: 16384 characters in all]"),
        ("y" + "🔥" * 16_384, "y" + "🔥" * 16_367 + "… [cut: 16385 characters in all]"),
    ],
    ids=["ascii", "surrogate pairs", "half of a pair at the end"],
)
def test_a_text_longer_than_a_cell_is_cut_visibly(alice, ticket, asked, run, text, shown):
    ticket("?", description=text), ticket("?", description="🔥" * 16_383)
    export = run(asked(alice, "xlsx", ["description"]))
    first, second = (row[0] for row in cells_of(export))
    assert first == shown
    assert len(first.encode("utf-16-le")) // 2 in (32_766, 32_767)
    assert second == "🔥" * 16_383
    assert export.cut_cells == 1


def test_the_page_says_how_many_texts_were_cut(client, alice, ticket, asked, run):
    ticket("?", description="x" * 1_000_000), ticket("?", description="x" * 40_000), ticket("?")
    client.force_login(alice)
    export = run(asked(alice, "xlsx", ["description"]))
    assert export.cut_cells == 2
    assert "2 texts are longer than a cell" in client.get(f"/exports/{export.pk}/").text
    whole = run(asked(alice, "csv", ["description"]))
    assert whole.cut_cells == 0
    assert "longer than a cell" not in client.get(f"/exports/{whole.pk}/").text


def test_numbers_are_numbers_and_times_are_times(alice, ticket, asked, run):
    due_at = datetime(2026, 7, 1, 12, 30, 15, 999_999, tzinfo=UTC)
    stored = ticket("7", due_at=due_at)
    export = run(asked(alice, "xlsx", ["id", "subject", "due_at"], time_zone="Asia/Kolkata"))
    sheet = workbook_of(export, data_only=True)["Tickets"]
    number, text, time = next(sheet.iter_rows(min_row=2))
    assert (number.data_type, number.value) == ("n", stored.pk)
    assert (text.data_type, text.value) == ("s", "7")
    assert (time.data_type, time.value) == ("d", datetime(2026, 7, 1, 18, 0, 15))
    assert time.number_format == "yyyy-mm-dd hh:mm:ss"
    assert sheet["C1"].value == "Due (Asia/Kolkata)"


def test_a_negative_number_is_a_number(alice, ticket, asked, run, monkeypatch):
    monkeypatch.setitem(
        COLUMNS,
        "description",
        Column("Balance", Kind.NUMBER, lambda zone: Value(-5) * F("version")),
    )
    ticket()
    assert cells_of(run(asked(alice, "xlsx", ["description"]))) == [[-5]]


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), datetime(2026, 3, 29, 1, 59, 59)),
        (datetime(2026, 3, 29, 1, 0, 0, tzinfo=UTC), datetime(2026, 3, 29, 3, 0, 0)),
        (datetime(2026, 10, 25, 0, 59, 59, tzinfo=UTC), datetime(2026, 10, 25, 2, 59, 59)),
        (datetime(2026, 10, 25, 1, 0, 0, tzinfo=UTC), datetime(2026, 10, 25, 2, 0, 0)),
        (datetime(1971, 1, 1, 0, 0, 0, tzinfo=UTC), datetime(1971, 1, 1, 1, 0, 0)),
        (datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(3000, 1, 1, 0, 59, 59)),
    ],
)
def test_times_are_those_of_the_zones_clocks(alice, ticket, asked, run, moment, shown):
    ticket(due_at=moment)
    export = run(asked(alice, "xlsx", ["due_at"], time_zone="Europe/Berlin"))
    assert cells_of(export) == [[shown]]


def test_a_tickets_number_leads_to_it(alice, ticket, asked, run, settings):
    settings.TEAMDESK_URL = "https://desk.example.org"
    stored = ticket()
    cell = workbook_of(run(asked(alice, "xlsx", ["id"])))["Tickets"]["A2"]
    address = f"https://desk.example.org/tickets/{stored.pk}/"
    assert (cell.data_type, cell.value) == ("f", f'=HYPERLINK("{address}",{stored.pk})')


@pytest.mark.parametrize(
    "address",
    ["", f"https://{'.'.join(['desk' * 12] * 5)}.example.org"],
    ids=["not known", "too long for a formula"],
)
def test_without_an_address_a_tickets_number_is_a_number(
    alice, ticket, asked, run, settings, address
):
    settings.TEAMDESK_URL = address
    stored = ticket()
    cell = workbook_of(run(asked(alice, "xlsx", ["id"])))["Tickets"]["A2"]
    assert (cell.data_type, cell.value) == ("n", stored.pk)


def test_more_rows_than_a_sheet_holds_go_on_in_others(alice, ticket, asked, run, monkeypatch):
    monkeypatch.setattr("exports.formats.workbook.ROWS_OF_A_SHEET", 3)
    stored = [ticket(f"Ticket {number}").pk for number in range(5)]
    export = run(asked(alice, "xlsx", ["id", "subject"]))
    book = workbook_of(export)
    assert book.sheetnames == ["Tickets", "Tickets 2", "Tickets 3"]
    assert [sheet.auto_filter.ref for sheet in book] == ["A1:B3", "A1:B3", "A1:B2"]
    sheets = sheets_of(export)
    assert [sheet[0] for sheet in sheets] == [["ID", "Subject"]] * 3
    assert [row[0] for sheet in sheets for row in sheet[1:]] == stored
    assert export.rows == 5


def test_a_full_sheet_begins_no_empty_one(alice, ticket, asked, run, monkeypatch):
    monkeypatch.setattr("exports.formats.workbook.ROWS_OF_A_SHEET", 3)
    ticket(), ticket()
    assert workbook_of(run(asked(alice, "xlsx", ["id"]))).sheetnames == ["Tickets"]


def test_the_header_stays_in_sight_and_filters(alice, ticket, asked, run):
    ticket()
    sheet = workbook_of(run(asked(alice, "xlsx")))["Tickets"]
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:Q2"
    assert all(cell.font.bold for cell in sheet[1])


@pytest.mark.parametrize(
    ("row_kind", "name"),
    [("tickets", "Tickets"), ("conversation", "Conversation"), ("history", "Changes")],
)
def test_sheets_are_called_after_their_rows(alice, ticket, asked, run, row_kind, name):
    ticket()
    export = run(asked(alice, "xlsx", row_kind=row_kind))
    assert export.task.status == TaskStatus.COMPLETED, export.error
    assert workbook_of(export).sheetnames == [name]


def test_it_speaks_the_requesters_language(alice, ticket, asked, run):
    alice.language = "zh-hans"
    alice.save()
    ticket(status="on_hold", priority="urgent")
    ((header, row),) = sheets_of(run(asked(alice, "xlsx", ["status", "priority"])))
    assert header == ["状态", "优先级"]
    assert row == ["已挂起", "紧急"]


def test_nothing_of_an_empty_row_is_lost(alice, ticket, asked, run):
    """A row without any cell still takes its line."""
    ticket(description=""), ticket(description="second")
    assert cells_of(run(asked(alice, "xlsx", ["description"]))) == [[None], ["second"]]


def test_it_spans_chunks_and_leaves_nothing_on_the_disk(
    alice, many, asked, run, monkeypatch, scratch
):
    monkeypatch.setattr("exports.jobs.CHUNK_BYTES", 1_000)
    many(100)
    export = run(asked(alice, "xlsx"))
    assert export.chunks.count() > 5
    assert export.size == len(content_of(export))
    assert len(cells_of(export)) == 100
    assert list(scratch.iterdir()) == []


def test_progress_is_rows_while_they_are_written(alice, many, asked, monkeypatch, run):
    monkeypatch.setattr("exports.jobs.PROGRESS_SECONDS", 0)
    monkeypatch.setattr("exports.formats.workbook.ROWS_AT_ONCE", 4)
    many(10)
    shown, progress = [], "tasks.lease.Lease.progress"
    monkeypatch.setattr(progress, lambda self, done, total: shown.append((done, total)))
    run(asked(alice, "xlsx", ["id"]))
    assert shown[:3] == [(0, 10), (4, 10), (8, 10)]
    assert shown == sorted(shown)  # never back, also while the workbook is stored
    assert shown[-1] == (10, 10)


def test_it_stops_when_it_is_cancelled_while_it_is_packed(
    alice, many, asked, run, monkeypatch, scratch
):
    """Packing a million rows takes a while, in which nothing is stored."""
    many(10)
    export, leases = asked(alice, "xlsx"), []
    source, assemble = jobs.Source, workbook.Workbook._store_workbook

    def note_the_lease(**given):
        leases.append(given["check"].__self__)
        return source(**given)

    def assemble_for_nothing(self):
        export.cancel(by=alice)
        leases[0].renew_if_held()  # as the thread at its side does
        assemble(self)

    monkeypatch.setattr(jobs, "Source", note_the_lease)
    monkeypatch.setattr(workbook.Workbook, "_store_workbook", assemble_for_nothing)
    monkeypatch.setattr(
        jobs, "_store", lambda *args: list(args[2]) and pytest.fail("It was packed to the end.")
    )
    export = run(export)
    assert export.task.status == TaskStatus.CANCELLED
    assert not export.chunks.exists()
    assert list(scratch.iterdir()) == []


def test_escapes_are_those_of_the_format(alice, ticket, asked, run):
    """What XML cannot hold is written as _xHHHH_, and what looks like that is escaped itself."""
    ticket("?", description="\x07 _x0007_ \uffff")
    export = run(asked(alice, "xlsx", ["description"]))
    assert b"_x0007_ _x005F_x0007_ _xFFFF_" in sheet_xml(export)
    assert cells_of(export) == [["\x07 _x0007_ \uffff"]]
    assert unescape("_x0007_ _x005F_x0007_") == "\x07 _x0007_"
