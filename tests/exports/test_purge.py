"""The purge: removes what nobody may need any more, and nothing else."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction

from exports.models import Export, ExportChunk
from exports.models import chunk as chunk_module
from exports.purge import purge_results
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask
from tests.exports.conftest import aged

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def requested(alice, support):
    return lambda: Export.objects.request(by=alice, filters={}, columns=["id"])


def chunk(export, execution_id=None, first_byte=0):
    return ExportChunk.objects.create(
        export=export,
        execution_id=execution_id or uuid.uuid4(),
        first_byte=first_byte,
        data=b"stored",
    )


def left():
    return set(ExportChunk.objects.values_list("export_id", "execution_id"))


def test_it_removes_results_past_their_time_and_the_grace(requested, run, settings):
    expired, in_grace, fresh = (run(requested()) for _ in range(3))
    aged(expired, expires_at=-settings.TEAMDESK_PURGE_GRACE - timedelta(seconds=1))
    aged(in_grace, expires_at=-settings.TEAMDESK_PURGE_GRACE + timedelta(minutes=1))
    assert purge_results(10) == 1
    assert left() == {(export.pk, export.execution_id) for export in (in_grace, fresh)}


def test_it_keeps_the_ledger_and_the_export(requested, run):
    export = run(requested())
    aged(export, expires_at=timedelta(days=-1))
    assert purge_results(10) == 1
    assert BackgroundTask.objects.get(kind="EXPORT").pk == Export.objects.get().pk


def test_it_removes_what_executions_that_did_not_complete_left(requested, run, alice):
    waiting, cancelled, completed = requested(), requested(), requested()
    chunk(waiting), chunk(cancelled), chunk(completed)
    cancelled.cancel(by=alice)
    completed = run(completed)
    late = chunk(completed)
    assert purge_results(10) == 3
    assert left() == {(completed.pk, completed.execution_id)}
    assert completed.execution_id != late.execution_id


def test_it_never_touches_a_live_execution(requested):
    export = requested()
    lease = Lease.claim(export.pk, 0)
    chunk(export, lease.execution_id), chunk(export, lease.execution_id, 1)
    chunk(export), chunk(export)
    assert purge_results(10) == 2
    assert left() == {(export.pk, lease.execution_id)}


def test_it_skips_from_execution_to_execution(requested, run):
    """Many exports, many chunks each: all found, whatever their order."""
    kept, gone = [], []
    for number in range(6):
        export = run(requested())
        for piece in range(1, 4):
            chunk(export, export.execution_id, piece)
        chunk(export)
        (gone if number % 2 else kept).append(export)
    for export in gone:
        aged(export, expires_at=timedelta(days=-1))
    assert purge_results(10) == 3 * 4 + 6
    assert left() == {(export.pk, export.execution_id) for export in kept}


def test_it_works_in_batches_within_its_budget(requested, monkeypatch):
    monkeypatch.setattr(chunk_module, "REMOVED_AT_ONCE", 2)
    export = requested()
    stale = uuid.uuid4()
    for number in range(5):
        chunk(export, stale, number)
    assert purge_results(0) == 0
    assert ExportChunk.objects.count() == 5
    assert purge_results(10) == 5


def test_it_does_not_wait_for_rows_that_another_removes(requested):
    stale = chunk(requested())
    other = connection.copy()
    try:
        with transaction.atomic():
            ExportChunk.objects.select_for_update().get(pk=stale.pk)
            with other.cursor() as cursor:
                cursor.execute("SET lock_timeout = '1s'")
            mine = connections["default"]
            connections["default"] = other
            try:
                assert purge_results(10) == 0
            finally:
                connections["default"] = mine
    finally:
        other.close()
    assert purge_results(10) == 1


def test_it_is_part_of_every_round(requested, run):
    export = run(requested())
    aged(export, expires_at=timedelta(days=-1))
    assert dispatch_once().purged == 1
    assert dispatch_once().purged == 0


def test_it_reads_no_chunk_data(requested, run, django_assert_num_queries):
    """One look; then nothing, however much is stored."""
    for _ in range(3):
        run(requested())
    with django_assert_num_queries(1):
        assert purge_results(10) == 0


# What the ledger forgets, exports included


def test_an_export_is_forgotten_with_its_task_after_its_chunks(requested, run):
    export = run(requested())
    aged(export, expires_at=timedelta(days=-40), finished_at=timedelta(days=-41))
    month = timedelta(days=30)
    assert BackgroundTask.objects.prune(month) == 0  # its chunks are still stored
    assert Export.objects.count() == 1
    purge_results(10)
    assert BackgroundTask.objects.prune(month) == 1
    assert not Export.objects.exists()
    assert not BackgroundTask.objects.filter(kind="EXPORT").exists()  # the mail of it is young


def test_an_export_that_has_not_expired_is_never_forgotten(requested, run):
    export = run(requested())
    aged(export, finished_at=timedelta(days=-400))
    ExportChunk.objects.all().delete()  # even so
    assert BackgroundTask.objects.prune(timedelta(days=30)) == 0
    assert Export.objects.get() == export


def test_a_failed_export_is_forgotten_too(requested):
    export = requested()
    export.task.cancel()
    aged(export, finished_at=timedelta(days=-31))
    assert BackgroundTask.objects.prune(timedelta(days=30)) == 1
    assert not Export.objects.exists()
