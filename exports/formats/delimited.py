"""CSV: records that PostgreSQL wrote, passed on as they came."""

import csv
import io
from collections.abc import Iterator
from operator import itemgetter

from exports.columns.cells import BLANKS, FORMULA_STARTS

from .source import Block, Source

BOM = b"\xef\xbb\xbf"  # without it Excel reads UTF-8 as the computer's old code page
CRLF, LINE_FEED = b"\r\n", 0x0A  # RFC 4180 ends every record with the first, COPY with the other
EMPTY = b'""'  # a record of one empty cell; many readers skip an empty line

# Of a record. A million are looked at, each by C code alone.
_LAST, _WITHOUT_LAST = itemgetter(-1), itemgetter(slice(-1))


def blocks(source: Source) -> Iterator[Block]:
    cells = (column.cell(source.zone) for column in source.columns.values())
    first, rows = [header_record(source.header(), source.delimiter)], 0
    for records in source.snapshot.csv(source.of(cells), source.delimiter, source.block_bytes):
        # One message, one record: what the row count relies on.
        if set(map(_LAST, records)) != {LINE_FEED}:
            raise RuntimeError("PostgreSQL sent a part of a record.")
        lines = map(_WITHOUT_LAST, records)
        if len(source.columns) == 1:
            lines = (line or EMPTY for line in lines)
        rows += len(records)
        yield Block(CRLF.join([*first, *lines, b""]), rows)
        first = []
    if first:
        yield Block(CRLF.join([*first, b""]), rows)


def header_record(titles: list[str], delimiter: str) -> bytes:
    record = io.StringIO()
    writer = csv.writer(record, delimiter=delimiter, lineterminator="")
    writer.writerow(map(guarded, titles))
    return BOM + record.getvalue().encode()


def guarded(title: str) -> str:
    """As ``exports.columns.cells.Guarded`` does with the cells below it."""
    return f"'{title}" if title.lstrip(BLANKS).startswith(tuple(FORMULA_STARTS)) else title
