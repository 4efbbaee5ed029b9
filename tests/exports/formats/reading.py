"""Files read back as other programs read them, and what a file must say of a ticket.

What is expected is made from the model and nothing else, so that no mistake of the export is in it.
"""

import csv
import gzip
import io
import json
from datetime import datetime
from zoneinfo import ZoneInfo

from openpyxl import load_workbook
from openpyxl.utils.escape import unescape

from tests.exports.conftest import content_of
from tickets.models import Ticket

FORMULA_STARTS = "=+-@＝＋－＠\t\r\n"
BLANKS = " \u00a0\u200b\u2060\u3000\ufeff"
TIMES = (
    "due_at",
    "created_at",
    "updated_at",
    "first_responded_at",
    "resolved_at",
    "closed_at",
)
csv.field_size_limit(10_000_000)  # a cell may have a megabyte
BOM = b"\xef\xbb\xbf"


def csv_of(export) -> list[list[str]]:
    """Rows, the header first."""
    content = content_of(export)
    if export.file_format == "csv.gz":
        content = gzip.decompress(content)
    assert content.count(BOM) == 1 and content.startswith(BOM)
    text = content.decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=export.delimiter))


def objects_of(export) -> list[dict]:
    content = content_of(export)
    assert content.endswith(b"\n") and b"\r" not in content and BOM not in content[:3]
    return [json.loads(line) for line in content.decode().split("\n")[:-1]]


def workbook_of(export, **options):
    return load_workbook(io.BytesIO(content_of(export)), **options)


def sheets_of(export) -> list[list[list]]:
    """Each sheet's rows, the header first; values as a person sees them, formulas' results too."""
    book = workbook_of(export, data_only=True, read_only=True)
    return [
        [
            [unescape(cell) if isinstance(cell, str) else cell for cell in row]
            for row in sheet.iter_rows(values_only=True)
        ]
        for sheet in book
    ]


def person(user) -> str | None:
    return None if user is None else user.display_name


def values_of(ticket: Ticket) -> dict:
    """By column, as the database has them."""
    return {
        "id": ticket.pk,
        "team": ticket.team.name,
        "subject": ticket.subject,
        "description": ticket.description,
        "status": ticket.status,
        "priority": ticket.priority,
        "requester_name": ticket.requester_name,
        "requester_email": ticket.requester_email,
        "creator": person(ticket.creator),
        "assignee": person(ticket.assignee),
        "tags": ticket.tags,
        **{name: getattr(ticket, name) for name in TIMES},
    }


def labelled(ticket: Ticket) -> dict:
    return values_of(ticket) | {
        "status": str(ticket.get_status_display()),
        "priority": str(ticket.get_priority_display()),
        "tags": ", ".join(ticket.tags),
    }


def local(moment, zone: str):
    """As clocks show it, to the second."""
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, microsecond=0)


def guarded(text: str) -> str:
    rest = text.lstrip(BLANKS)
    return f"'{text}" if rest and rest[0] in FORMULA_STARTS else text


def csv_row(ticket: Ticket, zone: str) -> list[str]:
    ours = ("id", "status", "priority")
    return [
        ""
        if value is None
        else str(value)
        if key in ours
        else str(local(value, zone))
        if key in TIMES
        else guarded(value)
        for key, value in labelled(ticket).items()
    ]


def workbook_row(ticket: Ticket, zone: str) -> list:
    return [
        local(value, zone) if key in TIMES and value else value or None
        for key, value in labelled(ticket).items()
    ]


def json_object(ticket: Ticket, zone: str) -> dict:
    return {
        key: value.astimezone(ZoneInfo(zone)).isoformat() if key in TIMES and value else value
        for key, value in values_of(ticket).items()
    }


def with_whole_fractions(line: dict) -> dict:
    """PostgreSQL leaves zeros at the end of a fraction out, Python never does."""
    return line | {
        name: datetime.fromisoformat(line[name]).isoformat() for name in TIMES if line[name]
    }
