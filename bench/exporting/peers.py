"""Other ways to get the same tickets out, in the same order, with the same joins.

Each returns ``{"seconds", "rows", "bytes"}``. They write plain cells: no guard against formulas, no
labels, no names made of two columns. Runs in a process with Django.
"""

import csv
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import CharField, F, Func, Value

from bench.exporting.tickets import ZONE, lead
from tickets.filters import TicketFilter
from tickets.models import Ticket

ROWS_AT_ONCE = 2_000  # that a cursor fetches
_TEXTS = (
    *("pk", "team__name", "subject", "description", "status", "priority", "requester_name"),
    *("requester_email", "creator__username", "assignee__username"),
)
_TIMES = ("due_at", "created_at", "updated_at", "first_responded_at", "resolved_at", "closed_at")


class _Local(Func):
    """A time without a zone, as openpyxl wants it."""

    template, arg_joiner = "(%(expressions)s)", " AT TIME ZONE "
    output_field = CharField()


class Sink:
    """A file that keeps nothing."""

    def __init__(self):
        self.size = 0

    def write(self, text) -> None:
        self.size += len(text)


def copy(limit: int | None = None) -> dict:
    """COPY of the columns as they are, read by psycopg and thrown away."""
    sql, parameters = _compiled(_tickets(limit).values_list(*_TEXTS, "tags", *_TIMES))
    size, started = 0, time.perf_counter()
    with _connection() as own, own.cursor() as cursor:
        with cursor.copy(f"COPY ({sql}) TO STDOUT", parameters) as rows:
            for row in rows:
                size += len(row)
        return _done(started, cursor.rowcount, size)


def libpq(limit: int | None = None) -> dict:
    """The same, read by the least that can be done in Python: one call of libpq for each row."""
    sql, parameters = _compiled(_tickets(limit).values_list(*_TEXTS, "tags", *_TIMES))
    size, rows, started = 0, 0, time.perf_counter()
    with _connection() as own, own.cursor() as cursor:
        with cursor.copy(f"COPY ({sql}) TO STDOUT", parameters):
            read = own.pgconn.get_copy_data
            while (length := read(0)[0]) > 0:
                size += length
                rows += 1
            while own.pgconn.get_result():
                pass
        return _done(started, rows, size)


def rows_through_csv(limit: int | None = None) -> dict:
    """Python objects from a server-side cursor, written by Python's csv module."""
    sql, parameters = _compiled(_tickets(limit).values_list(*_TEXTS, "tags", *_TIMES))
    sink, rows, started = Sink(), 0, time.perf_counter()
    writer = csv.writer(sink)
    with _connection() as own, own.cursor("rows") as cursor:
        cursor.execute(sql, parameters)
        while some := cursor.fetchmany(ROWS_AT_ONCE):
            writer.writerows(some)
            rows += len(some)
    return _done(started, rows, sink.size)


def import_export(limit: int | None = None) -> dict:
    """django-import-export's resource of the model, with its defaults."""
    from import_export.fields import Field
    from import_export.resources import ModelResource

    class TicketResource(ModelResource):
        tags = Field(attribute="tags")  # it knows no widget for arrays

        class Meta:
            model = Ticket
            fields = ("id", *_TEXTS[1:], "tags", *_TIMES)
            export_order = fields

    started = time.perf_counter()
    dataset = TicketResource().export(_tickets(limit))
    text = dataset.csv
    return _done(started, len(dataset), len(text.encode()))


def openpyxl(file: str, limit: int | None = None) -> dict:
    """openpyxl's write-only workbook, fed by a server-side cursor."""
    from openpyxl import Workbook

    tags = Func(F("tags"), Value(", "), function="array_to_string", output_field=CharField())
    times = [_Local(F(name), Value(ZONE)) for name in _TIMES]
    sql, parameters = _compiled(_tickets(limit).values_list(*_TEXTS, tags, *times))
    rows, started = 0, time.perf_counter()
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet("tickets")
    with _connection() as own, own.cursor("rows") as cursor:
        cursor.execute(sql, parameters)
        while some := cursor.fetchmany(ROWS_AT_ONCE):
            for row in some:
                sheet.append(row)
            rows += len(some)
    workbook.save(file)
    return _done(started, rows, Path(file).stat().st_size)


def _tickets(limit: int | None):
    """The rows that our export writes."""
    return TicketFilter({}, lead()).queryset()[:limit]


def _compiled(queryset) -> tuple[str, tuple]:
    return queryset.query.get_compiler(DEFAULT_DB_ALIAS).as_sql()


@contextmanager
def _connection():
    """As a program without Django opens it, with COPY's parameters and server-side cursors."""
    settings = connection.get_connection_params()
    own = psycopg.connect(
        **{key: settings[key] for key in ("host", "user", "dbname") if key in settings}
    )
    with own:
        own.execute(f"SET TIME ZONE '{ZONE}'")
        yield own


def _done(started: float, rows: int, size: int) -> dict:
    return {"seconds": time.perf_counter() - started, "rows": rows, "bytes": size}
