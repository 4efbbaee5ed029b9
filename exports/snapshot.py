"""A moment of the database, frozen: counting and reading see exactly the same rows."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Count

from tasks import patience


class Snapshot:
    """Reads querysets in one REPEATABLE READ READ ONLY transaction. Made by ``taken``."""

    def __init__(self, frozen_connection):
        self._connection = frozen_connection

    @classmethod
    @contextmanager
    def taken(cls, seconds: float):
        """A snapshot on a connection of its own, of which no statement may take longer than
        ``seconds``. The default connection stays free for short transactions meanwhile."""
        own = connection.copy()
        try:
            own.set_autocommit(False)
            own.connection.patience = seconds + patience.MARGIN_SECONDS
            with own.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                # Local to this transaction: a worker's sessions have much shorter limits.
                cursor.execute(
                    "SELECT set_config('statement_timeout', %s, true),"
                    " set_config('DateStyle', 'ISO', true)",
                    [f"{int(seconds)}s"],
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

    def csv(self, queryset) -> Iterator[memoryview]:
        """One record after the other as PostgreSQL writes it, each ending in a line feed."""
        sql, parameters = _compiled(queryset)
        # The driver's own cursor: Django's wrapper, in debug mode, knows no COPY with parameters.
        with self._connection.wrap_database_errors, self._connection.connection.cursor() as cursor:
            with cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)", parameters) as copy:
                yield from copy


def _compiled(queryset) -> tuple[str, tuple]:
    # Not elided: a queryset known to be empty still has columns.
    sql, parameters = queryset.query.get_compiler(DEFAULT_DB_ALIAS, elide_empty=False).as_sql()
    # Django's Now() is the statement's time, which differs from one statement to the next: then
    # "overdue" would select other tickets for the count than for the rows. Values are elsewhere.
    return sql.replace("STATEMENT_TIMESTAMP()", "TRANSACTION_TIMESTAMP()"), parameters
