"""Reading a COPY many rows at a time gives what psycopg gives one by one."""

import psycopg
import pytest
from django.db import connection

from exports import copying
from exports.copying import rows_of

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 500
TEXTS = f"COPY (SELECT n, repeat('x', n) FROM generate_series(1, {ROWS}) n) TO STDOUT"
BROKEN = "COPY (SELECT 100 / (400 - n) FROM generate_series(1, 1000) n) TO STDOUT"


@pytest.fixture
def cursor():
    own = connection.copy()
    own.ensure_connection()
    with own.connection.cursor() as cursor:
        yield cursor
    own.close()


@pytest.mark.parametrize("at_once", [1, 100, 10_000, 10_000_000])
def test_it_gives_every_row_once_and_in_order(cursor, at_once):
    with cursor.copy(TEXTS) as copy:
        wanted = [bytes(row) for row in copy]
    with cursor.copy(TEXTS) as copy:
        lists = list(rows_of(copy, at_once))
    assert [bytes(row) for rows in lists for row in rows] == wanted
    # As many as are needed for that size, and no more.
    assert all(sum(map(len, rows[:-1])) < at_once for rows in lists)
    assert all(sum(map(len, rows)) >= at_once for rows in lists[:-1])
    assert len(wanted) == ROWS


def test_it_gives_nothing_when_there_is_nothing(cursor):
    with cursor.copy("COPY (SELECT 1 WHERE false) TO STDOUT") as copy:
        assert list(rows_of(copy, 1_000)) == []


def test_it_says_why_postgresql_gave_up_half_way(cursor):
    came = []
    with pytest.raises(psycopg.errors.DivisionByZero):
        with cursor.copy(BROKEN) as copy:
            came.extend(rows_of(copy, 1_000))
    assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_whoever_stops_early_has_a_usable_connection(cursor):
    with pytest.raises(KeyError):
        with cursor.copy(TEXTS) as copy:
            next(rows_of(copy, 1_000))
            raise KeyError
    assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_it_refuses_another_number_of_rows_than_postgresql_sent(cursor, monkeypatch):
    real = copying._told

    def one_more(pgconn):
        told = yield from real(pgconn)
        return told + 1

    monkeypatch.setattr(copying, "_told", one_more)
    with pytest.raises(psycopg.DataError, match="500 rows arrived where PostgreSQL sent 501"):
        with cursor.copy(TEXTS) as copy:
            list(rows_of(copy, 1_000))
