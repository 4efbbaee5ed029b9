"""A delimited text file as rows: its encoding, its header, its line numbers, its defects."""

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Characters of one field. Python's own limit, 128 KiB, would cut a file with an unclosed quote at
# an arbitrary line instead of saying what is wrong with it.
_FIELD_LIMIT = 2**28

_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]


class SourceError(Exception):
    """The file cannot be read to its end; the text says why. Known before any row is used."""


@dataclass
class Row:
    """``line`` is the physical line it begins in, from 1. ``error`` says why there are no cells."""

    line: int
    cells: dict[str, str]
    error: str = ""


class Source:
    """Reads the file once to its end, so that nothing is taken from a file that is broken later on.

    Args:
        encoding: None recognises Unicode byte order marks and otherwise expects UTF-8.
        needed: columns that must be there; others are ignored.

    Raises SourceError. ``total`` is the number of rows.
    """

    def __init__(self, path: Path, needed: list[str], delimiter: str = ",", encoding=None):
        self.path, self.needed, self.delimiter = path, needed, delimiter
        try:
            # Before it is opened: a pipe would wait for its writer, and give its rows only once.
            if path.exists() and not path.is_file() and not path.is_dir():
                raise SourceError("it is not a regular file; save what it holds in one")
            with path.open("rb") as file:
                start = file.read(4096)
        except OSError as error:
            raise SourceError(error.strerror or str(error)) from error
        if not start:
            raise SourceError("the file is empty")
        self.encoding = _encoding(start, encoding)
        csv.field_size_limit(_FIELD_LIMIT)
        self.total = sum(1 for _ in self.rows())

    def rows(self) -> Iterator[Row]:
        with self.path.open(encoding=self.encoding, newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            header = None
            for line, cells, error in self._records(reader):
                if header is None:
                    header = self._header(cells, error)
                elif error:
                    yield Row(line, {}, error)
                elif len(cells) != len(header):
                    yield Row(line, {}, _miscounted(cells, header))
                else:
                    yield Row(line, dict(zip(header, cells, strict=True)))
            if header is None:
                raise SourceError("the file is empty")

    def _records(self, reader) -> Iterator[tuple[int, list[str], str]]:
        """Blank lines are skipped. An error inside a row costs that row."""
        while True:
            line = reader.line_num + 1
            try:
                cells, error = next(reader), ""
            except StopIteration:
                return
            except csv.Error as problem:
                if "unexpected end of data" in str(problem):
                    raise SourceError(
                        "the file ends inside the quoted field of a row that begins in line "
                        f"{line}: a quotation mark is missing, or the file was cut off"
                    ) from problem
                cells, error = [], f"the row is malformed: {problem}"
            except UnicodeDecodeError as problem:
                raise SourceError(
                    f"the text after line {reader.line_num} is not {self.encoding}: byte "
                    f"0x{problem.object[problem.start]:02x}; name the encoding with --encoding, "
                    "for example gb18030"
                ) from problem
            except UnicodeError as problem:  # UTF-16 without its mark
                raise SourceError(f"the file is not {self.encoding}: {problem}") from problem
            if cells or error:
                yield line, cells, error

    def _header(self, cells: list[str], error: str) -> list[str]:
        if error:
            raise SourceError(f"the header cannot be read: {error}")
        header = [cell.strip().removeprefix("\ufeff") for cell in cells]
        twice = {name for name in header if header.count(name) > 1 and name in self.needed}
        if twice:
            raise SourceError(f"columns that appear twice: {', '.join(sorted(twice))}")
        missing = [name for name in self.needed if name not in header]
        if missing:
            hint = ""
            others = [each for each in ";\t,|" if each != self.delimiter and each in "".join(cells)]
            if len(header) == 1 and others:
                hint = f"; perhaps the delimiter is {others[0]!r}, see --delimiter"
            raise SourceError(
                f"missing columns: {', '.join(missing)}; "
                f"found: {', '.join(name[:50] or '(unnamed)' for name in header[:50])}{hint}"
            )
        return header


def _encoding(start: bytes, name: str | None) -> str:
    if name is None:
        found = next((encoding for mark, encoding in _MARKS if start.startswith(mark)), None)
        if found is None and b"\0" in start:
            raise SourceError(
                "this looks like a binary file, not like text; if it is text, "
                "name its encoding with --encoding, for example utf-16-le"
            )
        return found or "utf-8"
    try:
        info = codecs.lookup(name)
        "".encode(name)
    except (LookupError, ValueError):
        raise SourceError(f"unknown encoding {name!r}") from None
    return "utf-8-sig" if info.name == "utf-8" else name


def _miscounted(cells: list[str], header: list[str]) -> str:
    text = f"{len(cells)} columns instead of {len(header)}"
    return f"{text}; was the file cut off?" if len(cells) < len(header) else text
