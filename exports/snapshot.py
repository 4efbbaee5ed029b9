"""A moment of the database, frozen: counting and reading see exactly the same rows."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Count

from exports.copying import rows_of
from tasks import patience

ROWS_AT_ONCE = 100  # taken from the connection, where rows come as Python's types


class Snapshot:
    """Reads querysets in one REPEATABLE READ READ ONLY transaction. Made by ``taken``."""

    def __init__(self, frozen_connection):
        self._connection = frozen_connection

    @classmethod
    @contextmanager
    def taken(cls, seconds: float, zone: str):
        """A snapshot on a connection of its own, of which no statement may take longer than
        ``seconds``, and whose clocks are those of ``zone``, a time zone's name. The default
        connection stays free for short transactions meanwhile."""
        own = connection.copy()
        try:
            own.set_autocommit(False)
            own.connection.patience = seconds + patience.MARGIN_SECONDS
            with own.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                # Local to this transaction: a worker's sessions have much shorter limits.
                cursor.execute(
                    "SELECT set_config('statement_timeout', %s, true),"
                    " set_config('TimeZone', %s, true), set_config('DateStyle', 'ISO', true)",
                    [f"{int(seconds)}s", zone],
                )
            yield cls(own)
        finally:
            own.close()

    def count_by(self, queryset, field: str) -> dict:
        """How many of its rows have which value of ``field``."""
        sql, parameters = _compiled(
            queryset.order_by().values_list(field).annotate(rows=Count("pk"))
        )
        with self._connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return dict(cursor.fetchall())

    def csv(self, queryset, delimiter: str, at_once: int) -> Iterator[list[memoryview]]:
        """The records as PostgreSQL writes them, each ending in a line feed; together about
        ``at_once`` bytes."""
        sql, parameters = _compiled(queryset)
        options = f"FORMAT csv, DELIMITER E'\\x{ord(delimiter):02x}'"
        return self._copied(f"COPY ({sql}) TO STDOUT ({options})", parameters, at_once)

    def json_lines(self, queryset, keys: list[str], at_once: int) -> Iterator[list[memoryview]]:
        """Objects, each ending in a line feed and with the values of one row under these keys;
        together about ``at_once`` bytes. Times have the offset of the snapshot's zone."""
        sql, parameters = _compiled(queryset)
        names = ", ".join(f'"{key}"' for key in keys)
        # Nothing but CSV leaves a backslash as it is. It quotes what holds its quote, its delimiter
        # or the end of a line: JSON writes all of those as an escape, so nothing is quoted.
        return self._copied(
            f"COPY (SELECT row_to_json(line) FROM ({sql}) AS line({names}))"
            " TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')",
            parameters,
            at_once,
        )

    def rows(self, queryset) -> Iterator[tuple]:
        """One row after the other, as Python's types."""
        sql, parameters = _compiled(queryset)
        own = self._connection.connection
        # Django's cursors put the parameters into the statement, without which PostgreSQL would not
        # know the type of each; only the driver's own take rows in binary, which saves much time.
        with self._connection.wrap_database_errors, psycopg.Cursor(own) as cursor:
            statement = own.cursor().mogrify(sql, parameters)
            yield from cursor.stream(statement, binary=True, size=ROWS_AT_ONCE)

    def _copied(
        self, statement: str, parameters: tuple, at_once: int
    ) -> Iterator[list[memoryview]]:
        # The driver's own cursor: Django's wrapper, in debug mode, knows no COPY with parameters.
        with self._connection.wrap_database_errors, self._connection.connection.cursor() as cursor:
            with cursor.copy(statement, parameters) as copy:
                yield from rows_of(copy, at_once)


def _compiled(queryset) -> tuple[str, tuple]:
    # Not elided: a queryset known to be empty still has columns.
    sql, parameters = queryset.query.get_compiler(DEFAULT_DB_ALIAS, elide_empty=False).as_sql()
    # Django's Now() is the statement's time, which differs from one statement to the next: then
    # "overdue" would select other tickets for the count than for the rows. Values are elsewhere.
    return sql.replace("STATEMENT_TIMESTAMP()", "TRANSACTION_TIMESTAMP()"), parameters
