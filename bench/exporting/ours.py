"""Our export, from the request to the stored file, and what is in the file. Runs in a process with
Django, prepared as Celery prepares a worker's."""

import codecs
import csv
import gzip
import hashlib
import io
import json
import time
from collections.abc import Iterable, Iterator

from bench.exporting.tickets import lead
from exports.models import Export, FileFormat
from tasks.worker import run_job
from tickets.models import Ticket

BOM = "\ufeff"


def export(file_format: str = FileFormat.CSV, filters: dict | None = None) -> dict:
    """One export of all columns. The time ends when the ledger says COMPLETED."""
    person = lead()
    started = time.perf_counter()
    asked = Export.objects.request(person, filters or {}, file_format=file_format)
    status = run_job(asked.pk, asked.task.run)
    seconds = time.perf_counter() - started
    done = Export.objects.select_related("task").get(pk=asked.pk)
    return {
        "pk": done.pk,
        "status": status,
        "error": done.task.last_error,
        "seconds": seconds,
        "rows": done.rows,
        "bytes": done.size,
    }


def ask_again(number: int) -> int:
    """A lead asks for everything, for a worker somewhere else. Returns the export."""
    return Export.objects.request(lead(number), {}).pk


def read_back(pk: int) -> dict:
    """What the stored file has: its bytes, its tickets, those that it lacks, those it has twice."""
    done = Export.objects.get(pk=pk)
    size = 0

    def counted(pieces: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal size
        for piece in pieces:
            size += len(piece)
            yield piece

    ids = list(_READERS[done.file_format](counted(done.content())))
    wanted = set(Ticket.objects.values_list("pk", flat=True))
    return {
        "bytes": size,
        "rows": len(ids),
        "lacks": len(wanted - set(ids)),
        "doubled": len(ids) - len(set(ids)),
        "strange": len(set(ids) - wanted),
    }


def digest(pk: int) -> str:
    """Of the stored file."""
    found = hashlib.sha256()
    for piece in Export.objects.get(pk=pk).content():
        found.update(piece)
    return found.hexdigest()


def _ids_of_csv(pieces: Iterable[bytes]) -> Iterator[int]:
    rows = csv.reader(_lines(codecs.iterdecode(pieces, "utf-8")))
    if not next(rows)[0].startswith(BOM):
        raise ValueError("the file does not begin with a byte order mark")
    return (int(row[0]) for row in rows)


def _lines(texts: Iterable[str]) -> Iterator[str]:
    """Whole lines, as the csv module wants them, with their own ends."""
    rest = ""
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        yield from (f"{line}\n" for line in lines)
    if rest:
        yield rest


def _ids_of_gzip(pieces: Iterable[bytes]) -> Iterator[int]:
    with gzip.GzipFile(fileobj=io.BytesIO(b"".join(pieces))) as file:
        yield from _ids_of_csv(iter(lambda: file.read(1 << 20), b""))


def _ids_of_json_lines(pieces: Iterable[bytes]) -> Iterator[int]:
    for line in b"".join(pieces).splitlines():
        yield next(iter(json.loads(line).values()))


def _ids_of_xlsx(pieces: Iterable[bytes]) -> Iterator[int]:
    from openpyxl import load_workbook

    # Of more than 1,048,575 rows there are several sheets.
    for sheet in load_workbook(io.BytesIO(b"".join(pieces)), read_only=True).worksheets:
        for row in sheet.iter_rows(min_row=2, values_only=True):
            yield int(row[0])


_READERS = {
    FileFormat.CSV: _ids_of_csv,
    FileFormat.CSV_GZ: _ids_of_gzip,
    FileFormat.JSONL: _ids_of_json_lines,
    FileFormat.XLSX: _ids_of_xlsx,
}
