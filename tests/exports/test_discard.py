"""POST /exports/<id>/discard/: a file goes before its time."""

from datetime import timedelta

import pytest

from exports.models import Export
from tasks.models import BackgroundTask
from tests.exports.conftest import aged, reloaded

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"accept": "application/json"}


@pytest.fixture
def ready(alice, ticket, run):
    ticket("Fire")
    return run(Export.objects.request(by=alice, filters={}, columns=["id"]))


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def url(export):
    return f"/exports/{export.pk}/discard/"


def test_it_expires_the_file_and_keeps_the_row(browser, ready):
    answer = browser.post(url(ready))
    assert answer["Location"] == f"/exports/{ready.pk}/"
    export = reloaded(ready)
    assert export.is_expired
    assert export.task.status == "COMPLETED"
    assert browser.get(f"/exports/{ready.pk}/download/").status_code == 410
    assert "Run again" in browser.get(f"/exports/{ready.pk}/").content.decode()


def test_it_makes_room_at_once(browser, ready, alice, settings):
    settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON = ready.size
    assert browser.post("/exports/new/", headers=JSON).status_code == 429
    browser.post(url(ready))
    assert browser.post("/exports/new/", headers=JSON).status_code == 202


def test_it_moves_no_time_that_is_over(browser, ready):
    before = aged(ready, expires_at=timedelta(hours=-2)).task.expires_at
    answer = browser.post(url(ready), headers=JSON)
    assert (answer.status_code, answer.json()["download_url"]) == (200, None)
    assert reloaded(ready).task.expires_at == before


@pytest.mark.parametrize("status", ["WAITING", "CANCELLED"])
def test_it_leaves_what_has_no_file_as_it_is(browser, alice, support, status):
    export = Export.objects.request(by=alice, filters={}, columns=["id"])
    if status == "CANCELLED":
        export.cancel(by=alice)
    browser.post(url(export))
    task = BackgroundTask.objects.get(pk=export.pk)
    assert (task.status, task.expires_at) == (status, None)


@pytest.mark.parametrize("name", ["bob", "charlie", "root"])
def test_it_does_not_exist_for_others(client, ready, name, request):
    client.force_login(request.getfixturevalue(name))
    assert client.post(url(ready)).status_code == 404
    assert not reloaded(ready).is_expired


def test_its_button_is_on_the_page_of_a_file_that_is_there(browser, ready):
    button = f'action="{url(ready)}"'
    assert button in browser.get(f"/exports/{ready.pk}/").content.decode()
    browser.post(url(ready))
    assert button not in browser.get(f"/exports/{ready.pk}/").content.decode()
