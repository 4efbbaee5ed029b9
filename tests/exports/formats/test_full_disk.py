"""A disk that is full, the database's or the worker's: failed at once, with a plain reason."""

import errno
import io
import os
import subprocess

import pytest
from django.utils.translation import trans_real

from exports.models import ExportChunk, FileFormat
from exports.purge import purge_results
from tasks.models import BackgroundTask, TaskAttempt, TaskStatus
from tests.exports.conftest import content_of, reloaded

pytestmark = pytest.mark.django_db(transaction=True)
FULL = "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'"


@pytest.mark.parametrize("file_format", FileFormat.values)
def test_a_full_database_fails_with_a_reason_and_a_retry_succeeds(
    client, alice, noisy, asked, run, monkeypatch, caplog, on_insert_of_a_chunk, file_format
):
    monkeypatch.setattr("exports.jobs.CHUNK_BYTES", 2_000)
    noisy(60, 500)
    make_room = on_insert_of_a_chunk("NEW.first_byte > 2500", FULL)
    export = run(asked(alice, file_format))
    assert (export.task.status, export.task.attempt) == (TaskStatus.FAILED, 1)
    assert export.error == (
        "The database's disk is full. The export can be tried again when there is room."
    )
    attempt = TaskAttempt.objects.get(task_id=export.pk)
    assert (attempt.outcome, attempt.finished_at is None) == ("failed", False)
    assert "could not extend file" in caplog.text  # for who has to make room
    assert (export.rows, export.size, export.execution_id) == (None, None, None)

    client.force_login(alice)
    page = client.get(f"/exports/{export.pk}/").text
    assert "The database&#x27;s disk is full." in page and "Retry" in page
    assert purge_results(10) > 0  # what was stored gives its room back
    assert not ExportChunk.objects.exists()

    make_room()
    export.retry(by=alice)
    export = run(reloaded(export))
    assert export.task.status == TaskStatus.COMPLETED
    assert len(content_of(export)) == export.size
    assert BackgroundTask.objects.filter(kind="EXPORT").count() == 1


def no_room(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_room_at_first():
    """A file's ``write`` of such a disk, until the file is cut off."""
    tried = []

    def write(file, data):
        tried.append(data)
        return io.FileIO.write(file, data) if len(tried) > 1 else no_room()

    return write


@pytest.mark.parametrize(
    "place",
    [
        "exports.formats.scratch.tempfile.mkdtemp",
        "exports.formats.workbook._Sheet.write_number",
        "exports.formats.workbook._Sheet._write_optimized_sheet_data",
        "exports.formats.workbook._Watched.write",
    ],
    ids=["the folder", "a row", "a sheet", "packing"],
)
def test_a_full_disk_of_the_worker_fails_with_a_reason(
    alice, many, asked, run, monkeypatch, scratch, place
):
    many(10)
    with monkeypatch.context() as full:
        full.setattr(place, no_room_at_first() if "_Watched" in place else no_room)
        export = run(asked(alice, "xlsx", ["subject", "due_at"]))
    assert (export.task.status, export.task.attempt) == (TaskStatus.FAILED, 1)
    assert export.error == (
        "The worker's disk is full. The export can be tried again when there is room."
    )
    assert not export.chunks.exists()
    assert list(scratch.iterdir()) == []

    export.retry(by=alice)
    assert run(reloaded(export)).task.status == TaskStatus.COMPLETED


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """3 MB for temporary files, really."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"Nothing may be mounted here: {mounted.stderr.decode().strip()}")
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize("number", [2_500, 1_000], ids=["rows do not fit", "nor does the sheet"])
def test_a_disk_that_is_really_full(alice, noisy, asked, run, small_disk, number):
    """The process goes on, so what it has open must not keep its place on the disk."""
    noisy(number, 900)
    export = run(asked(alice, "xlsx"))
    assert export.task.status == TaskStatus.FAILED
    assert export.error.startswith("The worker's disk is full.")
    space = os.statvfs(small_disk)
    assert space.f_bfree == space.f_blocks
    assert list(small_disk.iterdir()) == []


def test_the_reason_is_in_the_requesters_language(alice, many, asked, run, monkeypatch):
    alice.language = "zh-hans"
    alice.save()
    many(1)
    words = {"The worker's disk is full. The export can be tried again when there is room.": "满"}
    chinese = trans_real.translation("zh-hans")
    real = chinese.gettext
    monkeypatch.setattr(chinese, "gettext", lambda text: words.get(text) or real(text))
    monkeypatch.setattr("exports.formats.scratch.tempfile.mkdtemp", no_room)
    assert run(asked(alice, "xlsx")).error == "满"


def test_another_fault_of_the_disk_climbs_the_ladder(alice, many, asked, run, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    many(1)
    monkeypatch.setattr("exports.formats.scratch.tempfile.mkdtemp", broken)
    export = run(asked(alice, "xlsx"))
    assert (export.task.status, export.task.attempt) == (TaskStatus.WAITING, 1)
