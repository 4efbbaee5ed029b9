"""Every format at 10 and at 10,000 rows with every column: each cell as the database has it."""

import pytest
from django.db import DataError

from exports.columns import COLUMNS_OF
from exports.models import Export, FileFormat
from tasks.models import TaskStatus
from tests.exports.formats.reading import (
    csv_of,
    csv_row,
    json_object,
    objects_of,
    sheets_of,
    with_whole_fractions,
    workbook_row,
)
from tickets.models import Ticket

pytestmark = pytest.mark.django_db(transaction=True)

ZONE = "Europe/Berlin"  # the tickets' times lie on both sides of its change to summer time
SIZES = [10, 10_000]


def finished(export: Export, number: int) -> Export:
    assert export.task.status == TaskStatus.COMPLETED, export.error
    assert (export.rows, export.task.progress_done) == (number, number)
    assert export.cut_cells == 0
    return export


@pytest.fixture
def written(many, asked, run, alice):
    def write(number, file_format, **choices):
        tickets = many(number)
        export = run(asked(alice, file_format, time_zone=ZONE, **choices))
        return tickets, finished(export, number)

    return write


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize(
    ("file_format", "delimiter"), [("csv", ","), ("csv", ";"), ("csv", "\t"), ("csv.gz", ",")]
)
def test_csv_has_every_cell(written, number, file_format, delimiter):
    tickets, export = written(number, file_format, delimiter=delimiter)
    header, *rows = csv_of(export)
    assert header[:3] == ["ID", "Team", "Subject"]
    assert header[-1] == f"Closed ({ZONE})"
    assert rows == [csv_row(ticket, ZONE) for ticket in tickets]


@pytest.mark.parametrize("number", SIZES)
def test_json_lines_have_every_value(written, number):
    tickets, export = written(number, "jsonl")
    assert [with_whole_fractions(line) for line in objects_of(export)] == [
        json_object(ticket, ZONE) for ticket in tickets
    ]


@pytest.mark.parametrize("number", SIZES)
def test_a_workbook_has_every_cell(written, number):
    tickets, export = written(number, "xlsx")
    ((header, *rows),) = sheets_of(export)
    assert header[:3] == ["ID", "Team", "Subject"]
    assert header[-1] == f"Closed ({ZONE})"
    assert rows == [workbook_row(ticket, ZONE) for ticket in tickets]


@pytest.mark.parametrize("row_kind", COLUMNS_OF)
@pytest.mark.parametrize("file_format", FileFormat.values)
def test_every_kind_of_row_fits_every_format(alice, support, asked, run, row_kind, file_format):
    """With every column there is. What the cells say is the business of tests of the columns."""
    stored = Ticket.objects.open(by=alice, team=support, subject="=Printer", tags=["fire", "-x"])
    stored.comment(by=alice, body="+1\r\n\x07"), stored.set_tags(["smoke"], by=alice)
    stored.set_due(stored.created_at, by=alice), stored.assign(alice, by=alice)
    columns = COLUMNS_OF[row_kind]
    export = run(asked(alice, file_format, list(columns), row_kind=row_kind))
    assert export.task.status == TaskStatus.COMPLETED, export.error
    if file_format == "jsonl":
        rows = objects_of(export)
        assert all(list(row) == list(columns) for row in rows)
        numbers = [row["id"] for row in rows]
    else:
        header, *rows = sheets_of(export)[0] if file_format == "xlsx" else csv_of(export)
        assert header == [column.header("UTC") for column in columns.values()]
        numbers = [int(row[0]) for row in rows]
    assert numbers == [stored.pk] * export.rows
    events = stored.events.count()
    assert export.rows == {"tickets": 1, "conversation": 1, "history": events}[row_kind]
    assert events > 4


@pytest.mark.parametrize("file_format", FileFormat.values)
def test_a_text_of_a_megabyte(alice, ticket, asked, run, file_format):
    text = 'öd, "leer"\n' * 90_000
    ticket(description=text), ticket(description="short")
    export = run(asked(alice, file_format, ["description"]))
    assert export.rows == 2
    if file_format == "xlsx":
        ((_, (first,), (second,)),) = sheets_of(export)
        assert text.startswith(first.removesuffix("… [cut: 990000 characters in all]"))
        assert (len(first), export.cut_cells) == (32_767, 1)
    elif file_format == "jsonl":
        first, second = (line["description"] for line in objects_of(export))
        assert first == text
    else:
        _, (first,), (second,) = csv_of(export)
        assert first == text
    assert second == "short"


def test_no_file_has_a_nul_because_no_ticket_can(ticket):
    with pytest.raises(DataError, match="NUL"):
        ticket(description="a\x00b")


@pytest.mark.parametrize("file_format", FileFormat.values)
def test_no_row_is_a_file_too(support, alice, asked, run, file_format):
    export = finished(run(asked(alice, file_format)), 0)
    read = {"xlsx": lambda export: sheets_of(export)[0], "jsonl": nothing_of}.get(
        file_format, csv_of
    )
    assert len(read(export)) == (0 if file_format == "jsonl" else 1)


def nothing_of(export):
    assert export.size == 0
    return list(export.content())
