"""A worker killed half-way: the next attempt starts clean, and nothing of the first stays."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from exports.formats.scratch import PREFIX
from exports.models import ExportChunk, FileFormat
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tests.exports.conftest import aged, content_of, reloaded
from tests.exports.formats import reading

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

LOCK = 20_261_201
# Whoever stores the second chunk waits until the test lets go.
WAIT = f"PERFORM set_config('lock_timeout', '0', true); PERFORM pg_advisory_xact_lock({LOCK})"


WAITING = "FROM pg_locks WHERE objid = %s AND NOT granted"


def waiting() -> list[int]:
    """The sessions that wait for the test."""
    return asked_of_locks(f"SELECT pid {WAITING}")


def asked_of_locks(question: str) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(question, [LOCK])
        return [answer for (answer,) in cursor.fetchall()]


@pytest.mark.parametrize("file_format", FileFormat.values)
def test_the_next_attempt_starts_clean(
    processes, alice, noisy, asked, on_insert_of_a_chunk, scratch, wait_until, file_format
):
    numbers = noisy(600, 3_000)
    let_go = on_insert_of_a_chunk("NEW.first_byte > 0", WAIT)
    export = asked(alice, file_format, ["id", "description"])
    asked_of_locks("SELECT 1 FROM pg_advisory_lock(%s)")
    worker = processes.worker("long", TMPDIR=str(scratch))
    dispatch_once(wait_seconds=10)
    wait_until(waiting, "the worker is half-way")
    worker.kill()
    # Its session waits on: with the machine's power it would have gone as well.
    asked_of_locks(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE objid = %s AND NOT granted"
    )
    wait_until(lambda: not waiting(), "its session ends")
    asked_of_locks("SELECT pg_advisory_unlock(%s)")
    half = ExportChunk.objects.filter(export=export)
    (killed,) = half.values_list("execution_id", flat=True)
    assert reloaded(export).execution_id is None
    assert len(list(scratch.glob(f"{PREFIX}*"))) == (1 if file_format == "xlsx" else 0)
    let_go()

    aged(export, updated_at=-timedelta(hours=1))
    dispatch_once(wait_seconds=10)
    BackgroundTask.objects.filter(pk=export.pk).update(run_at=Now())
    processes.worker("long", TMPDIR=str(scratch))

    def done():
        dispatch_once(wait_seconds=10)
        return reloaded(export).task.status == TaskStatus.COMPLETED

    wait_until(done, "the next attempt completes", 60)
    export = reloaded(export)
    assert export.task.attempt == 2
    assert export.execution_id != killed
    executions = set(export.chunks.values_list("execution_id", flat=True))
    assert executions == {export.execution_id}
    assert len(content_of(export)) == export.size
    assert list(scratch.glob(f"{PREFIX}*")) == []
    read = {
        "xlsx": lambda: [row[0] for row in reading.sheets_of(export)[0][1:]],
        "jsonl": lambda: [line["id"] for line in reading.objects_of(export)],
    }.get(file_format, lambda: [int(row[0]) for row in reading.csv_of(export)[1:]])
    assert read() == numbers
