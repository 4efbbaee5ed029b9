"""The EXPORT handler."""

import csv
import io
import time
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from exports import columns
from exports.models import Export, ExportChunk
from exports.purge import unneeded_chunks
from exports.snapshot import Snapshot
from tasks.registry import LONG, PermanentFailure, handles
from tickets.models import Notification, NotificationKind

TIME_LIMIT = 3_600  # seconds
CHUNK_BYTES = 512 * 1024
CRLF = b"\r\n"  # RFC 4180 ends every record so
PROGRESS_SECONDS = 0.5  # people see it move; the ledger is not written for every chunk
BOM = b"\xef\xbb\xbf"  # without it Excel reads UTF-8 as the computer's old code page


@handles(
    "EXPORT",
    queue=LONG,
    time_limit=TIME_LIMIT,
    ladder=(5, 30),  # a person is waiting
    result_ttl=lambda: settings.TEAMDESK_EXPORT_TTL,
)
def run_export(task, lease):
    """Write the file as chunks of this execution; the effect makes them the export's result."""
    export = Export.objects.select_related("requester").filter(pk=task.pk).first()
    if export is None:
        raise PermanentFailure("The request was deleted, with the account that made it.")
    with translation.override(export.language):
        selected = _visible_rows(export)
        _remove_earlier_executions(export, lease)
        with Snapshot.taken(TIME_LIMIT) as snapshot:
            rows_of_team = snapshot.count_by(selected, "team")
            total = sum(rows_of_team.values())
            lease.progress(0, total)
            of_the_file = export.columns, export.time_zone, export.row_kind
            records = snapshot.csv(selected.values_list(*columns.cells(*of_the_file)))
            header = _header_record(columns.header(*of_the_file))
            rows, size = _write(export, lease, header, records, total)
    if rows != total:
        raise RuntimeError(f"{rows} rows were written where the snapshot has {total}.")
    lease.progress(rows, total)

    def effect():
        Export.objects.filter(pk=export.pk).update(
            rows=rows, size=size, team_ids=sorted(rows_of_team), execution_id=lease.execution_id
        )
        Notification.objects.notify(
            [export.requester],
            kind=NotificationKind.EXPORT_READY,
            cause=f"export:{task.pk}:{task.run}",
            text=str(rows),
            url=reverse("export_detail", args=[export.pk]),
        )

    return effect


def _visible_rows(export: Export):
    """Rights are those of now, not of the request."""
    if not export.requester.is_active:
        raise PermanentFailure(_("The account that asked for this export is not active any more."))
    try:
        return export.rows_to_write()
    except ValidationError as error:
        raise PermanentFailure(
            _("The filters do not fit any more: %(reasons)s")
            % {"reasons": " ".join(error.messages)}
        ) from error


def _remove_earlier_executions(export: Export, lease) -> None:
    # By the purge's rule and not "all but mine": this execution may have lost its lease without
    # knowing, and the others' chunks may be the result.
    for chunks in unneeded_chunks(export):
        while chunks.remove_some():
            lease.check()


def _header_record(titles: list[str]) -> bytes:
    record = io.StringIO()
    csv.writer(record, lineterminator="").writerow(titles)
    return BOM + record.getvalue().encode()


def _write(export, lease, header: bytes, records: Iterator, total: int) -> tuple[int, int]:
    """Commit the file chunk by chunk, each in a transaction of its own. Returns rows and bytes."""
    pieces, waiting = [header], len(header) + len(CRLF)
    rows = size = 0
    shown_at = time.monotonic()
    for record in records:
        # One message, one record: what the row count relies on.
        if record[-1] != 0x0A:
            raise RuntimeError("PostgreSQL sent a part of a record.")
        pieces.append(record[:-1])
        waiting += len(record) - 1 + len(CRLF)
        rows += 1
        if waiting >= CHUNK_BYTES:
            ExportChunk.objects.store(export, lease.execution_id, size, _lines(pieces))
            pieces, size, waiting = [], size + waiting, 0
            lease.check()
            if time.monotonic() - shown_at >= PROGRESS_SECONDS:
                lease.progress(rows, total)
                shown_at = time.monotonic()
    if pieces:
        ExportChunk.objects.store(export, lease.execution_id, size, _lines(pieces))
    return rows, size + waiting


def _lines(pieces: list) -> bytes:
    return CRLF.join([*pieces, b""])
