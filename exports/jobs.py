"""The EXPORT handler."""

import errno
import logging
import time
from collections.abc import Iterable
from contextlib import closing, contextmanager

import psycopg
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from exports import columns, turns
from exports.formats import BLOCKS_OF, Block, Source
from exports.models import Export, RowKind
from exports.models.limiting import too_many_bytes, too_many_rows
from exports.purge import unneeded_chunks
from exports.snapshot import Snapshot
from exports.storing import Storing
from tasks.registry import LONG, PermanentFailure, handles
from tickets.models import Notification, NotificationKind

logger = logging.getLogger(__name__)

TIME_LIMIT = 3_600  # seconds
CHUNK_BYTES = 512 * 1024
PROGRESS_SECONDS = 0.5  # people see it move; the ledger is not written for every chunk


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
    with translation.override(export.language), _saying_what_is_full():
        turns.take(export, lease)
        selected = _visible_rows(export)
        _remove_earlier_executions(export, lease)
        with Snapshot.taken(TIME_LIMIT, export.time_zone) as snapshot:
            rows_of_team = snapshot.count_by(selected, "team")
            total = sum(rows_of_team.values())
            if total > settings.TEAMDESK_EXPORT_MAX_ROWS:
                raise PermanentFailure(too_many_rows())
            lease.progress(0, total)
            source = Source(
                snapshot=snapshot,
                rows=selected,
                columns=columns.selected(export.columns, export.row_kind),
                zone=export.time_zone,
                delimiter=export.delimiter,
                sheet_name=RowKind(export.row_kind).sheet_name,
                block_bytes=CHUNK_BYTES,
                check=lease.check,
            )
            with closing(BLOCKS_OF[export.file_format](source)) as blocks:
                size, rows, cut_cells = _store(export, lease, blocks, total)
    if rows != total:
        raise RuntimeError(f"{rows} rows were written where the snapshot has {total}.")
    lease.progress(rows, total)

    def effect():
        # Two of a person's files may end at once: together they keep to the limit too.
        Export.objects.lock_person(export.requester)
        _hold_size(export, size, Export.objects.bytes_left_for(export.requester))
        Export.objects.filter(pk=export.pk).update(
            rows=rows,
            size=size,
            cut_cells=cut_cells,
            team_ids=sorted(rows_of_team),
            execution_id=lease.execution_id,
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


def _store(export, lease, blocks: Iterable[Block], total: int) -> tuple[int, int, int]:
    """Commit the file chunk by chunk, each in a transaction of its own.

    Returns bytes, rows, and cells that were cut.
    """
    rows = cut_cells = done = 0
    most = Export.objects.bytes_left_for(export.requester)
    shown_at = time.monotonic()
    with Storing(export, lease.execution_id) as storing:
        for block in blocks:
            rows, cut_cells = block.rows, block.cut_cells
            if block.data:
                _hold_size(export, storing.size + len(block.data), most)
                storing.add(block)
            lease.check()
            # Before a workbook is packed, which takes a while, people see that all of it is read.
            is_read = not block.data and rows == total > done
            if is_read or time.monotonic() - shown_at >= PROGRESS_SECONDS:
                # What is stored; where a format writes nothing for a while, what it has read. Never
                # back: a workbook is stored when all of it has been read.
                done = max(done, storing.rows if block.data else rows)
                lease.progress(done, total)
                shown_at = time.monotonic()
        storing.finish()
    return storing.size, rows, cut_cells


def _hold_size(export, size: int, most: int) -> None:
    if size > most:
        with translation.override(export.language):
            raise PermanentFailure(too_many_bytes())


@contextmanager
def _saying_what_is_full():
    """A full disk fails the export at once, in words for a person: attempts seconds apart would
    each fill it again, and who has made room retries."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        logger.warning("No room for the workbook: %s", error)
        raise PermanentFailure(
            _("The worker's disk is full. The export can be tried again when there is room.")
        ) from error
    except OperationalError as error:
        if not isinstance(error.__cause__, psycopg.errors.DiskFull):
            raise
        logger.warning("No room for the file: %s", error)
        raise PermanentFailure(
            _("The database's disk is full. The export can be tried again when there is room.")
        ) from error
