"""The rows of a COPY, many at a time.

psycopg hands them out one by one, each through half a dozen Python functions and a call of poll():
of a million rows that took longer than PostgreSQL needed to make them.
"""

from collections.abc import Iterator

import psycopg
from psycopg.pq import ExecStatus
from psycopg.waiting import WAIT_R


def rows_of(copy: psycopg.Copy, at_once: int) -> Iterator[list[memoryview]]:
    """The rows of a COPY TO STDOUT as PostgreSQL sent them, one message each, in lists of about
    ``at_once`` bytes, or one row.

    Raises:
        psycopg.Error: PostgreSQL did not come to its end, or counted another number of rows.
    """
    connection = copy.connection
    pgconn = connection.pgconn
    received, told = 0, None
    while told is None:
        rows, told = connection.wait(_some_rows(pgconn, at_once))
        received += len(rows)
        if rows:
            yield rows
    if received != told:
        raise psycopg.DataError(f"{received} rows arrived where PostgreSQL sent {told}.")


def _some_rows(pgconn, at_once: int):
    """For ``Connection.wait``: rows, and after the last one how many PostgreSQL says it sent."""
    rows, size = [], 0
    while size < at_once:
        length, row = pgconn.get_copy_data(1)
        if length > 0:
            rows.append(row)
            size += length
        elif length == 0:
            yield from _more(pgconn)
        else:
            told = yield from _told(pgconn)
            return rows, told
    return rows, None


def _told(pgconn):
    """How many rows the COPY had. Raises psycopg.Error when it failed."""
    results = []
    while True:
        while pgconn.is_busy():
            yield from _more(pgconn)
        result = pgconn.get_result()
        if result is None:
            break
        results.append(result)
    for result in results:
        if result.status != ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(result)
    return results[-1].command_tuples


def _more(pgconn):
    while not (yield WAIT_R):
        pass
    pgconn.consume_input()
