"""Running an export: one snapshot, fenced chunks, the rights of that moment."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from exports import jobs
from exports.jobs import run_export
from exports.models import Export, ExportChunk
from exports.snapshot import Snapshot
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.recovery import recover_expired_leases
from tasks.worker import run_job
from tests.exports.conftest import content_of, records_of, reloaded
from tickets.models import Notification, Ticket

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def export(alice, ticket):
    for number in range(20):
        ticket(f"Ticket {number}", description="long enough " * 20)
    return Export.objects.request(by=alice, filters={"sort": "id"}, columns=["id", "subject"])


@pytest.fixture
def after_first_chunk(monkeypatch):
    """``after_first_chunk(action)``: many small chunks, and it happens once the first is stored."""

    def arrange(action):
        monkeypatch.setattr(jobs, "CHUNK_BYTES", 100)
        monkeypatch.setattr(jobs, "PROGRESS_SECONDS", 0)
        store = ExportChunk.objects.store
        done = []

        def store_then_act(*chunk):
            store(*chunk)
            if not done:
                done.append(True)
                action()

        monkeypatch.setattr(ExportChunk.objects, "store", store_then_act)

    return arrange


def retried_now(export):
    """Ends the wait after a failed attempt."""
    BackgroundTask.objects.filter(pk=export.pk).update(run_at=Now())
    return reloaded(export)


def test_it_completes_with_rows_size_teams_and_expiry(export, support, run, settings):
    settings.TEAMDESK_EXPORT_TTL = timedelta(hours=24)
    export = run(export)
    assert export.task.status == TaskStatus.COMPLETED
    assert (export.task.progress_done, export.task.progress_total) == (20, 20)
    assert (export.rows, export.team_ids) == (20, [support.pk])
    assert export.size == len(content_of(export))
    assert export.task.expires_at - export.task.finished_at == timedelta(hours=24)
    assert export.is_ready


def test_it_tells_the_requester_once(export, alice, run):
    run(export)
    notification = Notification.objects.get()
    assert (notification.user, notification.kind) == (alice, "export_ready")
    assert notification.cause == f"export:{export.pk}:0"
    assert (notification.text, notification.url) == ("20", f"/exports/{export.pk}/")


def test_it_ignores_a_second_delivery(export, run):
    before = run(export)
    assert run_job(export.pk, 0) is None
    after = reloaded(export)
    assert after.execution_id == before.execution_id
    assert after.chunks.count() == before.chunks.count()


def test_it_holds_the_rows_of_one_moment(export, ticket, run, after_the_count):
    """Tickets come, go and change after the count, in committed transactions."""
    ids = [str(pk) for pk in Ticket.objects.order_by("pk").values_list("pk", flat=True)]

    def change_everything():
        ticket("Too late")
        Ticket.objects.filter(pk=ids[0]).delete()
        Ticket.objects.filter(pk=ids[1]).update(subject="Changed too late")

    after_the_count(change_everything)
    export = run(export)
    records = records_of(export)
    assert [record["id"] for record in records] == ids
    assert records[1]["subject"] == "Ticket 1"
    assert export.rows == 20


def test_it_counts_and_reads_overdue_at_one_moment(alice, ticket, run, after_the_count, wait_until):
    """A ticket becomes overdue between the count and the rows."""
    ticket("overdue", due_at=Now() - timedelta(hours=1))
    soon = ticket("overdue in a moment", due_at=Now() + timedelta(seconds=1))
    export = Export.objects.request(by=alice, filters={"overdue": "1"}, columns=["subject"])
    overdue = Ticket.objects.overdue().filter(pk=soon.pk)
    after_the_count(lambda: wait_until(overdue.exists, "the ticket is overdue"))
    export = run(export)
    assert export.task.status == TaskStatus.COMPLETED
    assert records_of(export) == [{"subject": "overdue"}]


def test_it_fails_rather_than_store_another_number_of_rows(export, run, monkeypatch):
    read = Snapshot.csv
    monkeypatch.setattr(
        Snapshot, "csv", lambda self, *args: ([records[1:] for records in read(self, *args)])
    )
    export = run(export)
    assert export.task.status == TaskStatus.WAITING
    assert "19 rows were written where the snapshot has 20" in export.task.last_error
    assert (export.rows, export.execution_id) == (None, None)


def test_it_fails_rather_than_store_a_torn_record(export, run, monkeypatch):
    monkeypatch.setattr(Snapshot, "csv", lambda self, *args: iter([[memoryview(b"1,half")]]))
    assert "a part of a record" in run(export).task.last_error


def test_it_writes_chunks_while_it_runs_outside_the_snapshot(export, run, after_first_chunk):
    seen = []
    after_first_chunk(lambda: seen.append(_seen_by_another_connection()))
    run(export)
    assert seen == [1]


def _seen_by_another_connection() -> int:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM exports_exportchunk")
            return cursor.fetchone()[0]
    finally:
        other.close()


def test_it_cannot_write_through_its_snapshot(export):
    with Snapshot.taken(10, "UTC") as snapshot:
        with snapshot._connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            assert cursor.fetchone() == ("repeatable read",)
            cursor.execute("SHOW transaction_read_only")
            assert cursor.fetchone() == ("on",)
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("10s",)


def test_it_never_mixes_with_what_a_killed_worker_left(export, run, monkeypatch):
    """Half of the chunks are stored, then the process is gone: nothing of Python's runs."""
    monkeypatch.setattr(jobs, "CHUNK_BYTES", 100)
    killed = Lease.claim(export.pk, 0)
    for number in range(3):
        ExportChunk.objects.create(
            export=export,
            execution_id=killed.execution_id,
            first_byte=number * 14,
            data=b"half,written\r\n",
        )
    BackgroundTask.objects.filter(pk=export.pk).update(updated_at=Now() - timedelta(hours=1))
    assert recover_expired_leases(5) == (1, 0)

    export = run(export)
    assert export.task.status == TaskStatus.COMPLETED
    assert export.task.attempt == 2
    assert set(export.chunks.values_list("execution_id", flat=True)) == {export.execution_id}
    assert len(records_of(export)) == 20


def test_it_never_mixes_with_an_execution_that_wakes_late(export, monkeypatch, run):
    """The old execution still writes after the new one completed: its chunks are not the result."""
    monkeypatch.setattr(jobs, "CHUNK_BYTES", 100)
    frozen = Lease.claim(export.pk, 0)
    BackgroundTask.objects.filter(pk=export.pk).update(updated_at=Now() - timedelta(hours=1))
    recover_expired_leases(5)
    export = run(export)
    good = content_of(export)

    ExportChunk.objects.create(
        export=export, execution_id=frozen.execution_id, first_byte=0, data=b"stale"
    )
    with pytest.raises(LeaseLost):
        run_export(frozen.task, frozen)
    with pytest.raises(LeaseLost):
        frozen.complete(lambda: Export.objects.filter(pk=export.pk).update(rows=0))
    assert content_of(reloaded(export)) == good
    assert reloaded(export).rows == 20


def test_it_stops_when_it_is_cancelled(export, alice, run, after_first_chunk):
    after_first_chunk(lambda: export.cancel(by=alice))
    export = run(export)
    assert export.task.status == TaskStatus.CANCELLED
    assert (export.rows, export.size, export.execution_id) == (None, None, None)
    assert 0 < export.chunks.count() < 10
    assert not Notification.objects.exists()


def test_it_runs_again_after_a_cancel(export, alice, run):
    export.cancel(by=alice)
    export = reloaded(export)
    assert export.retry(by=alice)
    assert not reloaded(export).retry(by=alice)  # it is waiting already
    export = run(export)
    assert (export.task.run, export.task.status) == (1, TaskStatus.COMPLETED)
    assert Notification.objects.get().cause == f"export:{export.pk}:1"


def test_it_fails_after_three_attempts_and_a_person_retries(export, alice, run, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(Snapshot, "csv", lambda self, *args: iter(()))
        for attempt, wait in ((1, 5), (2, 30)):
            failed = run(export)
            assert (failed.task.status, failed.task.attempt) == (TaskStatus.WAITING, attempt)
            assert round((failed.task.run_at - failed.task.updated_at).total_seconds()) == wait
            retried_now(export)
        failed = run(export)
    assert failed.task.status == TaskStatus.FAILED
    assert "0 rows were written where the snapshot has 20" in failed.error

    assert failed.retry(by=alice)
    export = run(reloaded(export))
    assert (export.task.status, export.task.run) == (TaskStatus.COMPLETED, 1)
    assert len(records_of(export)) == 20


def test_it_shows_only_what_may_be_seen_when_it_runs(export, alice, billing, support, ticket, run):
    """Between request and run alice is moved to another team."""
    seen = ticket("An invoice", team=billing)
    support.memberships.filter(user=alice).delete()
    billing.memberships.create(user=alice, role="viewer")
    assert records_of(run(export)) == [{"id": str(seen.pk), "subject": "An invoice"}]


def test_it_holds_nothing_when_every_right_is_lost(export, alice, support, run):
    support.memberships.filter(user=alice).delete()
    export = run(export)
    assert (export.task.status, export.rows) == (TaskStatus.COMPLETED, 0)


def test_it_fails_for_a_team_that_may_not_be_seen_any_more(alice, support, ticket, run):
    ticket()
    export = Export.objects.request(by=alice, filters={"team": [str(support.pk)]})
    support.memberships.filter(user=alice).delete()
    export = run(export)
    assert export.task.status == TaskStatus.FAILED  # trying again would not help
    assert export.error.startswith("The filters do not fit any more: Team:")


def test_it_fails_for_an_account_that_is_not_active_any_more(export, alice, run):
    alice.is_active = False
    alice.save()
    export = run(export)
    assert (export.task.status, export.task.attempt) == (TaskStatus.FAILED, 1)
    assert "not active any more" in export.error
    assert not export.chunks.exists()


def test_it_fails_quietly_when_the_requester_was_deleted(export, bob, run):
    Export.objects.filter(pk=export.pk).delete()
    run_job(export.pk, 0)
    task = BackgroundTask.objects.get(pk=export.pk)
    assert task.status == TaskStatus.FAILED
    assert "deleted" in task.last_error


def test_it_reports_progress_as_it_writes(export, run, after_first_chunk):
    shown = []

    def look():
        task = BackgroundTask.objects.get(pk=export.pk)
        shown.append((task.progress_done, task.progress_total))

    after_first_chunk(look)
    run(export)
    assert shown == [(0, 20)]


def test_it_stores_chunks_without_compressing_them(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage FROM pg_attribute"
            " WHERE attrelid = 'exports_exportchunk'::regclass AND attname = 'data'"
        )
        assert cursor.fetchone()[0] in ("e", b"e")


def test_it_ignores_chunks_of_unknown_executions(export, run):
    ExportChunk.objects.create(export=export, execution_id=uuid.uuid4(), first_byte=0, data=b"?")
    export = run(export)
    assert len(records_of(export)) == 20
