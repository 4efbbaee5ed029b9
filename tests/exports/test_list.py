"""/exports/: one's own exports."""

from datetime import timedelta

import pytest

from exports import views
from exports.models import Export
from tests.exports.conftest import aged

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/"


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def asked(user, **filters):
    return Export.objects.request(by=user, filters=filters, columns=["id"])


def test_it_says_what_to_do_when_there_is_none(browser):
    page = browser.get(URL).content.decode()
    assert "No exports yet" in page
    assert "hx-get" not in page.partition('id="exports"')[2].partition(">")[0]


def test_it_lists_ones_own_newest_first(browser, alice, bob, support):
    older, newer, other = asked(alice), asked(alice), asked(bob)
    page = browser.get(URL)
    assert [export.pk for export in page.context["page"]] == [newer.pk, older.pk]
    assert f"/exports/{other.pk}/" not in page.content.decode()


def test_it_offers_what_each_state_allows(browser, alice, support, run, ticket):
    ticket("Fire")
    waiting, ready, expired, cancelled = (asked(alice, q=f"word{n}") for n in range(4))
    run(ready), run(expired)
    cancelled.cancel(by=alice)
    aged(expired, expires_at=timedelta(seconds=-1))
    page = browser.get(URL).content.decode()
    for element in (f"cancel-{waiting.pk}", f"download-{ready.pk}", f"again-{expired.pk}"):
        assert f'id="{element}"' in page
    assert f'id="retry-{cancelled.pk}"' in page
    assert "Search: word0" in page


def test_it_offers_no_download_of_what_may_not_be_seen_any_more(
    browser, alice, support, run, ticket
):
    ticket("Fire")
    ready = run(asked(alice))
    support.memberships.filter(user=alice).delete()
    page = browser.get(URL).content.decode()
    assert f'id="download-{ready.pk}"' not in page


def test_it_looks_again_by_itself_while_anything_is_under_way(browser, alice, support, run):
    export = asked(alice)
    address = 'hx-get="/exports/?page=1"'
    assert address in browser.get(URL).content.decode()
    part = browser.get(URL, headers={"hx-request": "true"}).content.decode()
    assert address in part
    assert "<html" not in part
    run(export)
    assert address not in browser.get(URL).content.decode()


def test_it_shows_why_one_failed(browser, alice, support, run):
    export = asked(alice)
    support.memberships.filter(user=alice).delete()
    Export.objects.filter(pk=export.pk).update(filters={"team": [str(support.pk)]})
    run(export)
    assert "The filters do not fit any more: Team:" in browser.get(URL).content.decode()


def test_it_has_pages(browser, alice, support, monkeypatch):
    monkeypatch.setattr(views, "PER_PAGE", 2)
    exports = [asked(alice) for _ in range(3)]
    assert [export.pk for export in browser.get(URL, {"page": 2}).context["page"]] == [
        exports[0].pk
    ]
    assert browser.get(URL, {"page": "nonsense"}).context["page"].number == 1
    assert browser.get(URL, {"page": 99}).context["page"].number == 2


def test_it_asks_as_often_for_many_as_for_one(browser, alice, support, run, ticket):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def queries():
        with CaptureQueriesContext(connection) as captured:
            browser.get(URL)
        return len(captured)

    ticket("Fire")
    run(asked(alice, team=[str(support.pk)]))
    queries()  # what is asked for once per process
    one = queries()
    for number in range(8):
        export = asked(alice, team=[str(support.pk)], q=f"word{number}")
        if number % 2:
            run(export)
    assert queries() == one


def test_it_sends_strangers_to_the_log_in(client, db):
    assert client.get(URL)["Location"] == "/accounts/login/?next=/exports/"
    assert client.get(URL, headers={"accept": "application/json"}).status_code == 401
