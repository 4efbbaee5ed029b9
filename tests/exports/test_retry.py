"""POST /exports/<id>/retry/"""

import uuid

import pytest

from exports.models import Export
from tasks.models import BackgroundTask
from tests.exports.conftest import reloaded

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"accept": "application/json"}


@pytest.fixture
def failed(alice, support, run):
    export = Export.objects.request(by=alice, filters={}, columns=["id"], key=uuid.UUID(int=1))
    alice.is_active = False
    alice.save()
    export = run(export)
    alice.is_active = True
    alice.save()
    assert export.task.status == "FAILED"
    return export


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def url(export):
    return f"/exports/{export.pk}/retry/"


def test_it_starts_a_new_run(browser, failed, run):
    answer = browser.post(url(failed))
    assert answer["Location"] == f"/exports/{failed.pk}/"
    export = reloaded(failed)
    assert (export.task.status, export.task.run, export.error) == ("WAITING", 1, None)
    assert run(export).is_ready


def test_it_ignores_a_second_click(browser, failed):
    browser.post(url(failed))
    answer = browser.post(url(failed), headers=JSON)
    assert (answer.status_code, answer.json()["status"]) == (200, "WAITING")
    assert reloaded(failed).task.run == 1


def test_it_leaves_a_completed_export_as_it_is(browser, failed, run):
    browser.post(url(failed))
    before = run(reloaded(failed))
    browser.post(url(failed))
    after = reloaded(failed)
    assert after.is_ready
    assert after.execution_id == before.execution_id


def test_it_says_that_the_same_is_under_way_already(browser, failed, alice):
    Export.objects.request(by=alice, filters={}, columns=["id"], key=uuid.UUID(int=1))
    page = browser.post(url(failed), follow=True)
    assert "under way already" in page.content.decode()
    answer = browser.post(url(failed), headers=JSON)
    assert (answer.status_code, set(answer.json())) == (409, {"error"})
    assert reloaded(failed).task.status == "FAILED"
    assert BackgroundTask.objects.live().count() == 1


@pytest.mark.parametrize("name", ["bob", "charlie", "root"])
def test_it_does_not_exist_for_others(client, failed, name, request):
    client.force_login(request.getfixturevalue(name))
    assert client.post(url(failed)).status_code == 404
    assert reloaded(failed).task.status == "FAILED"


def test_it_needs_a_post(browser, failed):
    assert browser.get(url(failed)).status_code == 405
