"""/exports/<id>/download/: the whole file, to who asked for it, while it may be had."""

from datetime import timedelta

import pytest

from exports.models import Export, ExportChunk
from exports.purge import purge_results
from tasks.models import BackgroundTask, TaskStatus
from tests.exports.conftest import aged, content_of, reloaded

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"accept": "application/json"}


@pytest.fixture
def waiting(alice, ticket):
    for number in range(20):
        ticket(f"Ticket {number}", description="long enough " * 20)
    return Export.objects.request(by=alice, filters={}, columns=["id", "subject"])


@pytest.fixture
def export(waiting, run, monkeypatch):
    monkeypatch.setattr("exports.jobs.CHUNK_BYTES", 100)
    return run(waiting)


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def url(export):
    return f"/exports/{export.pk}/download/"


def refused(browser, export, status, says):
    """Both a person and a program are told."""
    page = browser.get(url(export))
    assert page.status_code == status
    assert page["Content-Type"].startswith("text/html")
    assert says in page.content.decode()
    answer = browser.get(url(export), headers=JSON)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    return page


def test_it_streams_the_file(browser, export):
    answer = browser.get(url(export))
    assert answer.status_code == 200
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    body = answer.getvalue()
    assert body == content_of(export)
    assert body.count(b"\r\n") == 21
    assert int(answer["Content-Length"]) == len(body)


def test_it_gives_programs_the_same_file(browser, export):
    assert browser.get(url(export), headers=JSON).getvalue() == content_of(export)


def test_it_holds_one_chunk_at_a_time(browser, export):
    pieces = browser.get(url(export)).streaming_content
    stored = [bytes(chunk.data) for chunk in export.chunks.order_by("first_byte")]
    assert len(stored) == 3
    assert list(pieces) == stored


@pytest.mark.parametrize("name", ["bob", "charlie", "root"])
def test_it_does_not_exist_for_others(client, export, name, request):
    client.force_login(request.getfixturevalue(name))
    assert client.get(url(export)).status_code == 404
    answer = client.get(url(export), headers=JSON)
    assert answer.status_code == 404
    assert set(answer.json()) == {"error"}


def test_it_asks_nobody_unknown(client, export):
    assert client.get(url(export)).status_code == 302
    answer = client.get(url(export), headers=JSON)
    assert (answer.status_code, set(answer.json())) == (401, {"error"})


def test_it_does_not_exist_without_an_export(browser):
    assert browser.get("/exports/4711/download/").status_code == 404


def test_it_is_gone_when_a_team_in_it_may_not_be_seen_any_more(browser, export, alice, support):
    support.memberships.filter(user=alice).delete()
    assert browser.get(url(export)).status_code == 404
    assert browser.get(url(export), headers=JSON).status_code == 404
    support.memberships.create(user=alice, role="viewer")
    assert browser.get(url(export)).status_code == 200


def test_it_stays_when_another_team_may_not_be_seen_any_more(browser, export, alice, billing):
    membership = billing.memberships.create(user=alice, role="agent")
    membership.delete()
    assert browser.get(url(export)).status_code == 200


@pytest.mark.parametrize("status", ["WAITING", "RUNNING", "FAILED", "CANCELLED"])
def test_it_conflicts_while_there_is_no_result(browser, waiting, alice, run, monkeypatch, status):
    if status == "RUNNING":
        from tasks.lease import Lease

        Lease.claim(waiting.pk, 0)
    elif status == "CANCELLED":
        waiting.cancel(by=alice)
    elif status == "FAILED":
        alice.is_active = False
        alice.save()
        run(waiting)
        alice.is_active = True
        alice.save()
    assert reloaded(waiting).task.status == status
    refused(browser, waiting, 409, "not ready")


def test_it_has_expired_before_the_purge_ran(browser, export):
    aged(export, expires_at=timedelta(seconds=-1))
    assert export.chunks.exists()
    page = refused(browser, export, 410, "has expired")
    assert "Run again" in page.content.decode()


def test_it_may_be_had_until_it_expires(browser, export):
    aged(export, expires_at=timedelta(minutes=1))
    assert browser.get(url(export)).status_code == 200


def test_it_asks_the_databases_clock(browser, export, time_machine):
    """A web node whose clock is a week ahead does not end the file's time."""
    time_machine.move_to(export.task.expires_at + timedelta(days=7))
    browser.force_login(export.requester)  # the session's age is judged by the node's clock
    assert browser.get(url(export)).status_code == 200


def test_it_has_still_expired_after_the_purge(browser, export, settings):
    aged(export, expires_at=-settings.TEAMDESK_PURGE_GRACE - timedelta(seconds=1))
    assert purge_results(10) > 0
    refused(browser, export, 410, "has expired")


def test_it_runs_again_out_of_the_expired_page(browser, export):
    aged(export, expires_at=timedelta(seconds=-1))
    form = {}
    for name, value in export.choices():
        form.setdefault(name, []).append(value)
    answer = browser.post("/exports/new/", form)
    again = Export.objects.exclude(pk=export.pk).get()
    assert answer["Location"] == f"/exports/{again.pk}/"
    assert again.columns == ["id", "subject"]
    assert again.task.status == TaskStatus.WAITING


def test_it_never_reads_another_executions_chunks(browser, export):
    other = BackgroundTask.objects.enqueue("EXPORT")  # any other uuid will do
    assert other
    for number in range(3):
        ExportChunk.objects.create(
            export=export,
            execution_id="00000000-0000-0000-0000-000000000000",
            first_byte=number * 100,
            data=b"stale",
        )
    assert b"stale" not in browser.get(url(export)).getvalue()


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_it_only_reads(browser, export, method):
    assert getattr(browser, method)(url(export)).status_code == 405
