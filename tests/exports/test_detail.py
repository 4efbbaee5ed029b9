"""/exports/<id>/: where an export stands, for people and for programs."""

from datetime import timedelta

import pytest
from django.utils.dateparse import parse_datetime

from exports.models import Export
from tasks.lease import Lease
from tasks.models import BackgroundTask
from tests.exports.conftest import aged

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"accept": "application/json"}
HTMX = {"hx-request": "true"}


@pytest.fixture
def export(alice, ticket):
    ticket("Fire")
    return Export.objects.request(by=alice, filters={"q": "fire"}, columns=["id", "subject"])


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def url(export):
    return f"/exports/{export.pk}/"


def shown(browser, export, **headers) -> str:
    page = browser.get(url(export), headers=headers)
    assert page.status_code == 200
    return page.content.decode()


def test_it_shows_what_was_asked_for(browser, export):
    page = shown(browser, export)
    for text in ("Search: fire", "UTC", "ID, Subject"):
        assert text in page


def test_it_looks_again_by_itself_until_it_has_ended(browser, export, run):
    address = f'hx-get="{url(export)}"'
    assert address in shown(browser, export)
    assert address in shown(browser, export, **HTMX)
    run(export)
    assert address not in shown(browser, export)
    assert address not in shown(browser, export, **HTMX)


def test_it_sends_its_live_part_alone_to_itself(browser, export):
    part = shown(browser, export, **HTMX)
    assert part.lstrip().startswith("<section")
    assert "<html" not in part


def test_it_is_not_mistaken_by_a_cache(browser, export):
    vary = browser.get(url(export))["Vary"].lower()
    assert "accept" in vary
    assert "hx-request" in vary


def test_it_shows_progress_and_cancel_while_running(browser, export):
    lease = Lease.claim(export.pk, 0)
    assert "Counting" in shown(browser, export)
    lease.progress(1_200, 5_000)
    page = shown(browser, export)
    assert "1,200 of 5,000 rows" in page
    assert 'value="1200" max="5000"' in page
    assert f"{url(export)}cancel/" in page


def test_it_offers_the_download_when_ready(browser, export, run):
    run(export)
    page = shown(browser, export)
    assert f'href="{url(export)}download/"' in page
    assert "1 row," in page


def test_it_says_aloud_that_it_is_ready(browser, export, run):
    run(export)
    assert "The export is ready." in shown(browser, export, **HTMX)


def test_it_shows_the_reason_and_retry_when_failed(browser, export, alice, run):
    alice.is_active = False
    alice.save()
    run(export)
    alice.is_active = True
    alice.save()
    page = shown(browser, export)
    assert "not active any more" in page
    assert f"{url(export)}retry/" in page


def test_it_says_that_another_attempt_follows(browser, export, run, monkeypatch):
    monkeypatch.setattr("exports.jobs.Snapshot.csv", lambda self, *args: iter(()))
    run(export)
    page = shown(browser, export)
    assert "Attempt 1 of 3 did not succeed" in page
    assert f"{url(export)}retry/" not in page


def test_it_offers_to_run_again_when_expired(browser, export, run):
    run(export)
    aged(export, expires_at=timedelta(seconds=-1))
    page = shown(browser, export)
    assert "has expired" in page
    assert "Run again" in page
    assert "download/" not in page


def test_it_says_that_it_may_not_be_seen_any_more(browser, export, alice, support, run):
    run(export)
    support.memberships.filter(user=alice).delete()
    page = shown(browser, export)
    assert "no longer have access" in page
    assert "download/" not in page
    assert browser.get(url(export), headers=JSON).json()["download_url"] is None


KEYS = {
    "id",
    "status",
    "progress_done",
    "progress_total",
    "rows",
    "bytes",
    "expires_at",
    "error",
    "download_url",
}


def told(browser, export) -> dict:
    answer = browser.get(url(export), headers=JSON)
    assert answer.status_code == 200
    assert set(answer.json()) == KEYS
    return answer.json()


def test_it_tells_programs_where_it_stands(browser, export, run):
    assert told(browser, export) == {
        "id": export.pk,
        "status": "WAITING",
        "progress_done": 0,
        "progress_total": None,
        "rows": None,
        "bytes": None,
        "expires_at": None,
        "error": None,
        "download_url": None,
    }
    lease = Lease.claim(export.pk, 0)
    lease.progress(3, 7)
    running = told(browser, export)
    assert (running["status"], running["progress_done"], running["progress_total"]) == (
        "RUNNING",
        3,
        7,
    )
    lease.release()
    export = run(export)
    ready = told(browser, export)
    assert parse_datetime(ready.pop("expires_at")).replace(microsecond=0) == (
        export.task.expires_at.replace(microsecond=0)
    )
    assert ready == {
        "id": export.pk,
        "status": "COMPLETED",
        "progress_done": 1,
        "progress_total": 1,
        "rows": 1,
        "bytes": export.size,
        "error": None,
        "download_url": f"{url(export)}download/",
    }
    aged(export, expires_at=timedelta(seconds=-1))
    assert told(browser, export)["download_url"] is None


def test_it_tells_programs_why_it_failed(browser, export, run, alice):
    BackgroundTask.objects.filter(pk=export.pk).update(max_attempts=1)
    alice.is_active = False
    alice.save()
    run(export)
    alice.is_active = True
    alice.save()
    failed = told(browser, export)
    assert failed["status"] == "FAILED"
    assert "not active any more" in failed["error"]


@pytest.mark.parametrize("name", ["bob", "vera", "charlie", "root"])
def test_it_does_not_exist_for_others(client, export, name, request):
    client.force_login(request.getfixturevalue(name))
    assert client.get(url(export)).status_code == 404
    answer = client.get(url(export), headers=JSON)
    assert (answer.status_code, set(answer.json())) == (404, {"error"})


@pytest.mark.parametrize("number", ["0", "99999999999999999999", "9223372036854775807"])
def test_it_does_not_exist_beyond_what_exists(browser, export, number):
    for page in ("", "download/"):
        assert browser.get(f"/exports/{number}/{page}").status_code == 404
    for verb in ("retry", "cancel"):
        assert browser.post(f"/exports/{number}/{verb}/").status_code == 404


def test_it_sends_the_whole_page_to_the_log_in_when_the_session_ended(client, export):
    answer = client.get(url(export), headers=HTMX)
    assert answer["HX-Refresh"] == "true"
    assert client.get(url(export)).status_code == 302
