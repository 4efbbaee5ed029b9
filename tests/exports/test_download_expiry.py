"""The end of a file's time, and the purge, at every moment of an export and of its download."""

import os
import uuid
from datetime import timedelta

import pytest
from django.db import connection

from exports.models import Export, ExportChunk
from exports.purge import purge_results
from tasks.lease import Lease
from tasks.models import TaskStatus
from tests.exports.conftest import aged, content_of, file_url, reloaded, store

pytestmark = pytest.mark.django_db(transaction=True)

YEAR = timedelta(days=365)


@pytest.fixture
def requested(alice, support):
    return lambda: Export.objects.request(alice, {}, ["id"])


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def past_grace(settings):
    return -settings.TEAMDESK_PURGE_GRACE - timedelta(seconds=1)


def status_of(browser, export, **headers) -> int:
    return browser.get(file_url(export), headers=headers).status_code


# Before there is a file


def test_an_export_that_waits_does_not_expire(browser, requested, run, settings):
    """Its file's time begins when the file is complete, however long ago it was asked for."""
    export = aged(requested(), created_at=-YEAR, run_at=-YEAR)
    assert purge_results(10) == 0
    assert (export.is_expired, status_of(browser, export)) == (False, 409)
    export = run(export)
    assert export.task.expires_at - export.task.finished_at == settings.TEAMDESK_EXPORT_TTL
    assert status_of(browser, export) == 200


def test_an_export_that_runs_does_not_expire(browser, requested):
    export = requested()
    lease = Lease.claim(export.pk, 0)
    store(export, lease.execution_id, [b"half", b"written"])
    export = aged(export, created_at=-YEAR, started_at=-YEAR)
    assert purge_results(10) == 0
    assert (export.is_expired, status_of(browser, export)) == (False, 409)
    assert export.chunks.count() == 2


def test_an_export_that_waits_for_its_next_attempt_does_not_expire(browser, requested, run):
    """What its failed attempt stored goes; the next one makes a whole file with its whole time."""
    export = requested()
    lease = Lease.claim(export.pk, 0)
    store(export, lease.execution_id, [b"half", b"written"])
    assert lease.fail_attempt(RuntimeError("The disk is full.")) == TaskStatus.WAITING
    export = aged(export, created_at=-YEAR)
    assert (export.is_expired, status_of(browser, export)) == (False, 409)
    assert purge_results(10) == 2

    export = run(aged(export, run_at=timedelta()))
    assert status_of(browser, export) == 200
    assert set(export.chunks.values_list("execution_id", flat=True)) == {export.execution_id}


def test_a_completed_export_has_no_further_run(stored, alice):
    """So no file is ever replaced while somebody reads it: to run it again is another export."""
    export = stored(b"file")
    assert not export.retry(by=alice)
    assert not export.cancel(by=alice)
    assert Lease.claim(export.pk, 0) is None
    assert reloaded(export).execution_id == export.execution_id


# While it is downloaded


def test_a_download_that_began_in_time_ends_in_the_grace(browser, stored, settings):
    export = stored(b"one", b"two", b"three")
    pieces = iter(browser.get(file_url(export)).streaming_content)
    begun = next(pieces)
    aged(export, expires_at=timedelta(minutes=1) - settings.TEAMDESK_PURGE_GRACE)
    assert purge_results(10) == 0
    assert begun + b"".join(pieces) == b"onetwothree"


def test_the_rest_of_a_download_is_refused_past_the_files_time(browser, stored):
    """Each request is judged at its own time, also within the grace."""
    export = stored(b"one", b"two")
    etag = browser.get(file_url(export))["ETag"]
    aged(export, expires_at=timedelta(seconds=-1))
    assert status_of(browser, export, range="bytes=3-", if_range=etag) == 410
    assert status_of(browser, export, if_none_match=etag) == 410


def test_a_download_that_the_purge_overtakes_breaks_off(browser, stored, past_grace):
    export = stored(b"one", b"two", b"three")
    answer = browser.get(file_url(export))
    pieces = iter(answer.streaming_content)
    assert next(pieces) == b"one"
    aged(export, expires_at=past_grace)
    assert purge_results(10) == 3
    with pytest.raises(ExportChunk.DoesNotExist):
        next(pieces)
    assert answer["Content-Length"] == "11"  # by which the reader knows


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_file_that_lacks_a_chunk_never_looks_whole(browser, stored, gone):
    export = stored(b"one", b"two", b"three")
    export.chunks.order_by("first_byte")[gone].delete()
    with pytest.raises(ExportChunk.DoesNotExist):
        browser.get(file_url(export)).getvalue()


def test_the_rest_is_not_there_for_whom_lost_the_right_to_it(browser, stored, alice, support):
    export = stored(b"one", b"two")
    assert status_of(browser, export, range="bytes=0-2") == 206
    support.memberships.filter(user=alice).delete()
    assert status_of(browser, export, range="bytes=3-") == 404
    assert status_of(browser, export, range="bytes=3-", accept="application/json") == 404
    etag = f'"{export.execution_id.hex}-{export.size}"'
    assert status_of(browser, export, if_none_match=etag) == 404


def test_the_rest_is_not_there_for_whom_is_not_active_any_more(browser, stored, alice):
    export = stored(b"one", b"two")
    assert status_of(browser, export, range="bytes=0-2") == 206
    alice.is_active = False
    alice.save()
    assert status_of(browser, export, range="bytes=3-") == 302  # to log in, in vain
    assert status_of(browser, export, range="bytes=3-", accept="application/json") == 401


# The purge beside it


def test_the_purge_frees_the_space_beside_a_download(
    browser, stored, actor, past_grace, monkeypatch
):
    """The reader, on a connection of its own and in the middle of its file, holds nothing that
    keeps removed chunks on the disk."""
    monkeypatch.setattr("exports.models.chunk.REMOVED_AT_ONCE", 3)
    kept = stored(*(os.urandom(100_000) for _ in range(4)))
    expired = stored(*(os.urandom(100_000) for _ in range(40)))
    aged(expired, expires_at=past_grace)
    whole = content_of(kept)
    before = size_on_disk()

    reader = actor("reader")
    pieces = reader.do(lambda: iter(browser.get(file_url(kept)).streaming_content))
    got = reader.do(next, pieces)
    assert purge_results(10) == 40
    with connection.cursor() as cursor:
        cursor.execute("VACUUM exports_exportchunk")
    assert size_on_disk() < before / 3
    assert got + reader.do(b"".join, pieces) == whole


def size_on_disk() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size('exports_exportchunk')")
        return cursor.fetchone()[0]


def test_a_download_does_not_wait_for_a_purge(browser, stored, actor, past_grace):
    """Another connection is in the middle of a batch; the reader of that very file goes on, and
    breaks off when the batch is committed."""
    export = stored(b"one", b"two", b"three")
    reader, purger = actor("reader"), actor("purger")
    pieces = reader.do(lambda: iter(browser.get(file_url(export)).streaming_content))
    assert reader.do(next, pieces) == b"one"
    aged(export, expires_at=past_grace)
    purger.begin()
    assert purger.do(purge_results, 10) == 3
    assert reader.do(next, pieces) == b"two"
    purger.commit()
    with pytest.raises(ExportChunk.DoesNotExist):
        reader.do(next, pieces)


def test_what_a_killed_worker_left_goes_and_the_result_stays(browser, stored):
    export = stored(b"one", b"two")
    store(export, uuid.uuid4(), [b"half", b"of", b"it"])
    assert purge_results(10) == 3
    assert browser.get(file_url(export)).getvalue() == b"onetwo"
