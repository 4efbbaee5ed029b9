"""JSON Lines: one object a row, for programs.

Keys are the columns' keys and values are what the database has, whatever the language: numbers,
lists, null, times with their offset in the export's zone. Nothing is guarded: no program runs a
text because of its first character.
"""

from collections.abc import Iterator

from .source import Block, Source


def blocks(source: Source) -> Iterator[Block]:
    values = (column.for_programs(source.zone) for column in source.columns.values())
    pieces, waiting, rows = [], 0, 0
    for line in source.snapshot.json_lines(source.of(values), list(source.columns), source.zone):
        pieces.append(line)
        waiting += len(line)
        rows += 1
        if waiting >= source.block_bytes:
            yield Block(b"".join(pieces), rows)
            pieces, waiting = [], 0
    if pieces:
        yield Block(b"".join(pieces), rows)
