"""JSON Lines: one object a row, for programs.

Keys are the columns' keys and values are what the database has, whatever the language: numbers,
lists, null, times with their offset in the export's zone. Nothing is guarded: no program runs a
text because of its first character.
"""

from collections.abc import Iterator

from .source import Block, Source


def blocks(source: Source) -> Iterator[Block]:
    values = (column.for_programs(source.zone) for column in source.columns.values())
    keys, rows = list(source.columns), 0
    for lines in source.snapshot.json_lines(source.of(values), keys, source.block_bytes):
        rows += len(lines)
        yield Block(b"".join(lines), rows)
