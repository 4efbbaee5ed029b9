"""CSV: records that PostgreSQL wrote, passed on as they came."""

import csv
import io
from collections.abc import Iterator

from exports.columns.cells import BLANKS, FORMULA_STARTS

from .source import Block, Source

BOM = b"\xef\xbb\xbf"  # without it Excel reads UTF-8 as the computer's old code page
CRLF = b"\r\n"  # RFC 4180 ends every record so
EMPTY = b'""'  # a record of one empty cell; many readers skip an empty line


def blocks(source: Source) -> Iterator[Block]:
    header = header_record(source.header(), source.delimiter)
    pieces, waiting, rows = [header], len(header) + len(CRLF), 0
    cells = (column.cell(source.zone) for column in source.columns.values())
    for record in source.snapshot.csv(source.of(cells), source.delimiter):
        # One message, one record: what the row count relies on.
        if record[-1] != 0x0A:
            raise RuntimeError("PostgreSQL sent a part of a record.")
        line = record[:-1] or EMPTY
        pieces.append(line)
        waiting += len(line) + len(CRLF)
        rows += 1
        if waiting >= source.block_bytes:
            yield Block(_lines(pieces), rows)
            pieces, waiting = [], 0
    if pieces:
        yield Block(_lines(pieces), rows)


def header_record(titles: list[str], delimiter: str) -> bytes:
    record = io.StringIO()
    writer = csv.writer(record, delimiter=delimiter, lineterminator="")
    writer.writerow(map(guarded, titles))
    return BOM + record.getvalue().encode()


def guarded(title: str) -> str:
    """As ``exports.columns.cells.Guarded`` does with the cells below it."""
    return f"'{title}" if title.lstrip(BLANKS).startswith(tuple(FORMULA_STARTS)) else title


def _lines(pieces: list) -> bytes:
    return CRLF.join([*pieces, b""])
