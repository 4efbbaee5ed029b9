"""/exports/schedules/: one's own scheduled exports, and what one does with them there."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from exports.models import ScheduledExport
from tests.exports.schedules.conftest import (
    exports,
    form,
    its_time_comes,
    reread,
    run_due,
    schedule,
    told,
    waiting,
)

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/schedules/"


def test_it_says_what_to_do_when_there_is_none(browser):
    assert "Nothing is scheduled yet" in browser.get(URL).content.decode()


def test_it_shows_what_how_often_and_when_next_in_the_persons_zone(browser, alice):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    scheduled = schedule(alice, zone="Europe/Berlin")
    moment = datetime(2030, 1, 7, 7, tzinfo=UTC)
    ScheduledExport.objects.update(next_run_at=moment)
    page = browser.get(URL).content.decode()
    assert "Status: open" in page
    assert "Every Monday at 8 a.m. (Europe/Berlin)" in page
    assert "Jan. 7, 2030, 3 p.m." in page
    assert f'id="pause-{scheduled.pk}"' in page and f'id="resume-{scheduled.pk}"' not in page


def test_it_shows_why_one_is_paused(browser, alice, support, billing, scheduled):
    support.memberships.filter(user=alice).delete()
    run_due(scheduled)
    page = browser.get(URL).content.decode()
    assert "does not belong to any team" in page
    assert f'id="resume-{scheduled.pk}"' in page and f'id="pause-{scheduled.pk}"' not in page


def test_it_shows_one_that_nobody_ran_as_late(browser, scheduled):
    assert "Late" not in browser.get(URL).content.decode()
    its_time_comes(scheduled, ago=timedelta(hours=1))
    assert "Late" in browser.get(URL).content.decode()


def test_it_leads_to_the_last_file(browser, scheduled):
    export = run_due(scheduled).last_export
    assert f'href="/exports/{export.pk}/"' in browser.get(URL).content.decode()


def test_it_asks_as_often_for_many_as_for_one(browser, alice, support):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(URL).status_code == 200
        return len(captured)

    run_due(schedule(alice, filters={"team": [str(support.pk)]}))
    queries()  # what is asked for once per process
    one = queries()
    for _number in range(4):
        run_due(schedule(alice, filters={"team": [str(support.pk)]}))
    assert queries() == one


def test_others_have_their_own(browser, bob, scheduled):
    other = schedule(bob, name="Of bob")
    assert "Of bob" not in browser.get(URL).content.decode()
    for address in ("edit/", "pause/", "resume/", "delete/", "run/"):
        assert browser.post(f"{URL}{other.pk}/{address}", form()).status_code == 404
    assert browser.get(f"{URL}{other.pk}/edit/").status_code == 404
    assert reread(other).name == "Of bob"
    assert len(waiting()) == 2 and not exports().exists()


# Its verbs


def test_it_is_paused_resumed_and_deleted(browser, scheduled):
    address = f"{URL}{scheduled.pk}/"
    assert "is paused" in told(browser.post(f"{address}pause/"))
    assert waiting() == []
    browser.get(URL)  # shows what it said
    assert told(browser.post(f"{address}pause/")) == ""  # a second click
    assert "runs next on" in told(browser.post(f"{address}resume/"))
    assert len(waiting()) == 1
    assert "is deleted" in told(browser.post(f"{address}delete/"))
    assert waiting() == [] and not ScheduledExport.objects.exists()
    assert browser.post(f"{address}delete/").status_code == 404


def test_why_it_is_not_resumed_is_said(browser, alice, support, scheduled):
    support.memberships.filter(user=alice).delete()
    run_due(scheduled)
    answer = browser.post(f"{URL}{scheduled.pk}/resume/")
    assert answer.url == URL
    assert "does not belong to any team" in told(answer)


def test_it_runs_now_once_for_a_double_click(browser, scheduled):
    key = browser.get(URL).context["key"]
    answers = [browser.post(f"{URL}{scheduled.pk}/run/", {"key": key}) for _number in range(2)]
    export = exports().get()
    assert [answer.url for answer in answers] == [f"/exports/{export.pk}/"] * 2


def test_unknown_verbs_and_gets_are_refused(browser, scheduled):
    assert browser.post(f"{URL}{scheduled.pk}/explode/").status_code == 404
    assert browser.get(f"{URL}{scheduled.pk}/delete/").status_code == 405
    assert len(waiting()) == 1


def test_strangers_log_in_first(client, scheduled):
    for address in ("", "new/", f"{scheduled.pk}/edit/"):
        assert client.get(URL + address).url.startswith("/accounts/login/?next=")


def test_the_exports_page_leads_here(browser):
    assert f'href="{URL}"' in browser.get("/exports/").content.decode()
