"""CSV: its delimiter, its header, its compressed twin."""

import gzip
import io

import pytest
from django.db.models import F, Value

from exports.columns import Column, Kind
from exports.columns.tickets import COLUMNS
from exports.formats.delimited import guarded, header_record
from tests.exports.conftest import content_of
from tests.exports.formats import reading

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_quoted_where_it_is_text(alice, ticket, asked, run, delimiter):
    ticket("a,b;c\td", priority="high")
    export = run(asked(alice, "csv", ["subject", "priority"], delimiter=delimiter))
    lines = f'\ufeffSubject{delimiter}Priority\r\n"a,b;c\td"{delimiter}high\r\n'
    assert content_of(export) == lines.encode()


@pytest.mark.parametrize("title", ["Due", "=1", " =1", "\t1", "＝1", "-", "Größe", "5-4", ""])
def test_titles_are_guarded_as_the_cells_below_them(alice, ticket, asked, run, title):
    ticket(title)
    export = run(asked(alice, "csv", ["subject"]))
    assert reading.csv_of(export)[1] == [guarded(title)] == [reading.guarded(title)]


def test_a_title_with_the_delimiter_is_quoted():
    assert header_record(["a;b", "=c"], ";") == b'\xef\xbb\xbf"a;b";\'=c'
    assert header_record(["a;b", "=c"], ",") == b"\xef\xbb\xbfa;b,'=c"


def test_compressed_holds_the_same_bytes_whatever_the_time(alice, noisy, asked, run, monkeypatch):
    monkeypatch.setattr("exports.jobs.CHUNK_BYTES", 5_000)
    noisy(30, 2_000)
    plain, packed, again = (run(asked(alice, each)) for each in ("csv", "csv.gz", "csv.gz"))
    assert gzip.decompress(content_of(packed)) == content_of(plain)
    assert content_of(packed) == content_of(again)
    assert packed.size < plain.size * 0.7  # of digits chosen by chance at least half must stay
    assert packed.chunks.count() >= 3
    assert gzip.GzipFile(fileobj=io.BytesIO(content_of(packed))).peek(1)
    assert content_of(packed)[4:8] == bytes(4)  # no time of its making


def test_a_negative_number_is_not_guarded(alice, ticket, asked, run, monkeypatch):
    balance = Column("Balance", Kind.NUMBER, lambda zone: Value(-5) * F("version"))
    monkeypatch.setitem(COLUMNS, "description", balance)
    ticket("-5")
    export = run(asked(alice, "csv", ["subject", "description"]))
    assert reading.csv_of(export) == [["Subject", "Balance"], ["'-5", "-5"]]


@pytest.mark.parametrize("file_format", ["csv", "csv.gz"])
def test_a_row_whose_only_cell_is_empty_is_a_row_all_the_same(
    alice, bob, ticket, asked, run, file_format
):
    """An empty line is none for many readers: the file would have fewer rows than it should."""
    ticket(), ticket(assignee=bob), ticket()
    export = run(asked(alice, file_format, ["assignee"]))
    assert reading.csv_of(export) == [["Assignee"], [""], ["Bob Berg"], [""]]
    assert export.rows == 3
