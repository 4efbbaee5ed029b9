"""What every format is given, and what it makes of it.

A format is a function ``blocks(source) -> Iterator[Block]``. It writes nothing to the database and
knows nothing of tasks; closing it early leaves nothing behind.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet

from exports.columns import Column
from exports.snapshot import Snapshot


class Block(NamedTuple):
    """``data`` comes next in the file; empty, it says only that work went on. ``rows`` and
    ``cut_cells`` (texts that were too long for a cell) count all until now."""

    data: bytes
    rows: int
    cut_cells: int = 0


@dataclass(frozen=True)
class Source:
    """The rows and how they are wanted. Labels are in the active language.

    Attributes:
        rows: what the rows of the file come from, filtered and in order.
        columns: by key, in the file's order.
        zone: a time zone's name; times are shown as its clocks do.
        sheet_name: what the rows are called, in the active language.
        block_bytes: a block of data is about so large, or the last.
        check: raises when the work is in vain; formats call it where no block comes for a while.
    """

    snapshot: Snapshot
    rows: QuerySet
    columns: dict[str, Column]
    zone: str
    delimiter: str
    sheet_name: str
    block_bytes: int
    check: Callable[[], None]

    def header(self) -> list[str]:
        return [column.header(self.zone) for column in self.columns.values()]

    def of(self, expressions: Iterable) -> QuerySet:
        """The rows with these values, in this order."""
        return self.rows.values_list(*expressions)
