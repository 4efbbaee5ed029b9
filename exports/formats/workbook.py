"""XLSX: typed cells, streamed by XlsxWriter into temporary files and read from there at the end.

A workbook is a zip whose directory comes last and whose sheets are written before they are packed,
so it cannot go straight into chunks. Memory holds one row, the disk about three times the sheets.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from traceback import clear_frames

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from xlsxwriter import Workbook
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from exports.columns import Column, Kind
from exports.columns.cells import FORMULA_STARTS, Joined, LocalTime
from tickets.mail.addresses import absolute

from .scratch import scratch_folder
from .source import Block, Source

ROWS_OF_A_SHEET = 1_048_576  # Excel's limit, the header included; more rows begin another sheet
CELL_UNITS = 32_767  # Excel's limit, in UTF-16 units
LINK_CHARACTERS = 255  # Excel's limit for a text within a formula
ROWS_AT_ONCE = 1_000  # between two looks at the lease

DAY_ZERO, DAY = datetime(1899, 12, 30), timedelta(days=1)  # a time is a count of days
TIME_FORMAT = "yyyy-mm-dd hh:mm:ss"
WIDTHS = {Kind.TEXT: 30, Kind.LABEL: 12, Kind.NUMBER: 12, Kind.LINK: 10, Kind.TIME: 20}
LIST_WIDTH = 24


def blocks(source: Source) -> Iterator[Block]:
    with scratch_folder() as folder:
        file = folder / "workbook.xlsx"
        with _Book(source, folder, file) as book:
            for row in source.snapshot.rows(source.of(_values(source))):
                book.add(row)
                if book.rows % ROWS_AT_ONCE == 0:
                    yield Block(b"", book.rows, book.cut_cells)
            yield Block(b"", book.rows, book.cut_cells)
            book.pack()
        with file.open("rb") as packed:
            while data := packed.read(source.block_bytes):
                yield Block(data, book.rows, book.cut_cells)


def _values(source: Source) -> Iterator:
    for column in source.columns.values():
        value = column.value(source.zone)
        if column.kind is Kind.TIME:
            yield LocalTime(value)
        elif column.kind is Kind.LIST:
            yield Joined(value)
        else:
            yield value


class _Sheet(Worksheet):
    """XlsxWriter's, less what is in our way."""

    def _xml_rich_inline_string(self, string, attributes=()):
        # A text that starts with <r> and ends with </r> is taken for rich text that XlsxWriter made
        # itself: a ticket could write XML into the sheet. We write no rich text.
        self._xml_inline_string(string, True, attributes)

    def _prepare_formula(self, formula, expand_future_functions=False):
        # Ours needs none of the forty searches for functions that need a prefix.
        return formula


class _Watched(io.FileIO):
    """A file whose writer hears that its work is in vain: packing takes a while."""

    def __init__(self, path: Path, check: Callable[[], None]):
        super().__init__(path, "w")
        self._check = check

    def write(self, data) -> int:
        self._check()
        return super().write(data)

    def give_up(self) -> None:
        """Gives its place on the disk back, and stays open."""
        self._check = lambda: None
        self.truncate(0)


class _Book:
    """A workbook under way. ``rows`` and ``cut_cells`` count what was written."""

    def __init__(self, source: Source, folder: Path, file: Path):
        self.rows = self.cut_cells = 0
        self._source, self._folder = source, folder
        self._watched = _Watched(file, source.check)
        self._file = io.BufferedWriter(self._watched)
        # Texts go through write_string, which never makes a formula or a link of them.
        self._book = Workbook(self._file, {"constant_memory": True, "tmpdir": str(folder)})
        self._book.use_zip64()  # without it, a sheet of more than 2 GB is an error
        self._bold = self._book.add_format({"bold": True})
        self._time = self._book.add_format({"num_format": TIME_FORMAT})
        # Excel then keeps "=1+1" a text also when somebody opens the cell and leaves it with Enter.
        self._quoted = self._book.add_format({"quote_prefix": True})
        self._link = self._book.get_default_url_format()
        # In full, so that the mark takes the same place whatever the language.
        self._mark = _("… [cut: %(characters)s characters in all]")
        # In two parts, because making an address takes longer than writing a row.
        self._before, _zero, self._after = absolute(reverse("ticket_detail", args=[0])).rpartition(
            "0"
        )
        self._begin_sheet()

    def __enter__(self):
        return self

    def __exit__(self, error_class, error, traceback):
        if error is not None:
            self._give_up()

    def _give_up(self) -> None:
        """XlsxWriter has no way to: what it holds open would keep its place on the disk."""
        for sheet in self._book.worksheets():
            for file in (sheet.row_data_fh, sheet.fh):
                with suppress(OSError):  # what is left to write does not fit either
                    file.close()
        for file in self._folder.iterdir():
            file.unlink()
        if not self._watched.closed:
            self._watched.give_up()

    def add(self, row: tuple) -> None:
        if self._line == ROWS_OF_A_SHEET:
            self._end_sheet()
            self._begin_sheet()
        line = self._line
        for write, position, value in zip(self._writers, self._positions, row, strict=True):
            if value is not None:
                write(line, position, value)
        self._line += 1
        self.rows += 1

    def pack(self) -> None:
        self._end_sheet()
        try:
            self._pack()
        except BaseException as error:
            # The zip that was begun writes its end as it goes: now, while its file is open and has
            # room.
            self._give_up()
            clear_frames(error.__traceback__)
            raise

    def _pack(self) -> None:
        try:
            self._book.close()
        except FileCreateError as error:
            raise error.args[0] from None  # the OSError that it wraps
        self._file.close()

    # Sheets

    def _begin_sheet(self) -> None:
        number = len(self._book.worksheets()) + 1
        name = self._source.sheet_name if number == 1 else f"{self._source.sheet_name} {number}"
        self._sheet = self._book.add_worksheet(name, _Sheet)
        self._sheet.freeze_panes(1, 0)
        columns = list(self._source.columns.values())
        for position, (column, title) in enumerate(
            zip(columns, self._source.header(), strict=True)
        ):
            self._sheet.set_column(position, position, WIDTHS.get(column.kind, LIST_WIDTH))
            self._sheet.write_string(0, position, title, self._bold)
        self._writers = [self._writer(column) for column in columns]
        self._positions = range(len(columns))
        self._line = 1

    def _end_sheet(self) -> None:
        self._sheet.autofilter(0, 0, self._line - 1, len(self._positions) - 1)

    # Cells

    def _writer(self, column: Column) -> Callable:
        if column.kind is Kind.NUMBER:
            return self._sheet.write_number
        return {Kind.TIME: self._write_time, Kind.LINK: self._write_link}.get(
            column.kind, self._write_text
        )

    def _write_text(self, line: int, position: int, text: str) -> None:
        if len(text) > CELL_UNITS // 2:
            text = self._fitting(text)
        if text:
            quoted = self._quoted if text[0] in FORMULA_STARTS else None
            self._sheet.write_string(line, position, text, quoted)

    def _fitting(self, text: str) -> str:
        units = text.encode("utf-16-le")
        if len(units) <= 2 * CELL_UNITS:
            return text
        self.cut_cells += 1
        mark = self._mark % {"characters": len(text)}
        kept = units[: 2 * CELL_UNITS - len(mark.encode("utf-16-le"))]
        return kept.decode("utf-16-le", "ignore") + mark  # ignoring half of a character at its end

    def _write_time(self, line: int, position: int, at: datetime) -> None:
        self._sheet.write_number(line, position, (at - DAY_ZERO) / DAY, self._time)

    def _write_link(self, line: int, position: int, number: int) -> None:
        """A formula of our own making: a sheet holds 65,530 links of the other kind, which would
        also fill the memory. Its value is the number, so that sorting and sums work."""
        address = f"{self._before}{number}{self._after}"
        if not settings.TEAMDESK_URL or len(address) > LINK_CHARACTERS:
            self._sheet.write_number(line, position, number)
        else:
            formula = f'HYPERLINK("{address}",{number})'
            self._sheet.write_formula(line, position, formula, self._link, number)
