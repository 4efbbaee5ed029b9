"""Storing the file while it is made: in order, whole, and over when the attempt is over."""

import pytest
from django.db import OperationalError, connection

from exports import jobs
from exports.models import Export, ExportChunk
from tasks.models import TaskStatus
from tests.exports.conftest import content_of, records_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def export(alice, ticket, monkeypatch):
    """Of ten blocks and more."""
    monkeypatch.setattr(jobs, "CHUNK_BYTES", 100)
    for number in range(20):
        ticket(f"Ticket {number}", description="long enough " * 20)
    return Export.objects.request(
        by=alice, filters={"sort": "id"}, columns=["subject", "description"]
    )


def _sessions() -> int:
    """Of this database, others than the one that asks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return cursor.fetchone()[0]


def test_its_chunks_follow_each_other_without_a_gap(export, run):
    export = run(export)
    position = 0
    for chunk in export.chunks.order_by("first_byte"):
        assert chunk.first_byte == position
        position += len(chunk.data)
    assert position == export.size
    assert export.chunks.count() > 10
    assert [record["subject"] for record in records_of(export)] == [
        f"Ticket {number}" for number in range(20)
    ]


def test_what_cannot_be_stored_fails_the_attempt(export, run, monkeypatch):
    """The third chunk finds no place: nothing comes after it, and the next attempt starts anew."""
    store, stored = ExportChunk.objects.store, []

    def store_two(*chunk):
        if len(stored) == 2:
            raise OperationalError("no place for it")
        stored.append(chunk)
        store(*chunk)

    with monkeypatch.context() as full:
        full.setattr(ExportChunk.objects, "store", store_two)
        export = run(export)
    assert export.task.status == TaskStatus.WAITING
    assert "no place for it" in export.task.last_error
    assert export.chunks.count() == 2
    assert (export.size, export.rows) == (None, None)


def test_no_session_is_left_behind(export, alice, run, wait_until):
    run(export)  # the process's own are open from now on
    before = _sessions()
    assert run(Export.objects.request(by=alice, filters={})).chunks.count() > 10
    wait_until(lambda: _sessions() <= before, "the export's sessions have ended")


def test_a_small_file_needs_no_session_of_its_own(export, run, monkeypatch):
    monkeypatch.setattr(jobs, "CHUNK_BYTES", 1_000_000)
    store, seen = ExportChunk.objects.store, []
    # The snapshot's is there, no other.
    monkeypatch.setattr(
        ExportChunk.objects, "store", lambda *chunk: (seen.append(_sessions()), store(*chunk))
    )
    export = run(export)
    again = run(Export.objects.request(by=export.requester, filters={}))
    assert again.chunks.count() == 1
    assert seen[-1] == _sessions() + 1
    assert len(content_of(export)) == export.size
