"""POST /exports/<id>/cancel/"""

import pytest

from exports.models import Export
from tasks.lease import Lease, LeaseLost
from tests.exports.conftest import reloaded

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"accept": "application/json"}


@pytest.fixture
def export(alice, support):
    return Export.objects.request(by=alice, filters={}, columns=["id"])


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def url(export):
    return f"/exports/{export.pk}/cancel/"


def test_it_cancels_what_waits(browser, export, run):
    answer = browser.post(url(export))
    assert answer["Location"] == f"/exports/{export.pk}/"
    assert reloaded(export).task.status == "CANCELLED"
    assert run(export).task.status == "CANCELLED"  # a message that comes late


def test_it_takes_the_lease_of_what_runs(browser, export):
    lease = Lease.claim(export.pk, 0)
    browser.post(url(export))
    with pytest.raises(LeaseLost):
        lease.progress(1, 2)
    assert reloaded(export).task.status == "CANCELLED"


def test_it_ignores_a_second_click(browser, export):
    browser.post(url(export))
    answer = browser.post(url(export), headers=JSON)
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    assert answer.json()["error"] is None


def test_it_leaves_a_completed_export_as_it_is(browser, export, run):
    run(export)
    browser.post(url(export))
    assert reloaded(export).is_ready


@pytest.mark.parametrize("name", ["bob", "charlie", "root"])
def test_it_does_not_exist_for_others(client, export, name, request):
    client.force_login(request.getfixturevalue(name))
    assert client.post(url(export)).status_code == 404
    assert reloaded(export).task.status == "WAITING"


def test_it_needs_a_post(browser, export):
    assert browser.get(url(export)).status_code == 405
