"""The forms of a new scheduled export and of one that exists."""

from datetime import time

import pytest

from exports.models import ScheduledExport
from tests.exports.schedules.conftest import form, reread, schedule, told, waiting

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/schedules/"


# A new one


def test_the_form_comes_with_what_the_new_export_has(browser):
    query = "status=open&columns=id&columns=team&format=jsonl&time_zone=UTC"
    page = browser.get(f"{URL}new/?{query}")
    fields = page.context["form"]
    assert page.context["shown"] == [("Status", "open")]
    assert fields["name"].value() == "Open"
    assert fields["columns"].value() == ["id", "team"]
    assert fields["format"].value() == "jsonl"
    assert fields["time_zone"].value() == ""  # her own
    assert (fields["rhythm"].value(), fields["zone"].value()) == ("weekly", "UTC")
    assert '<input type="hidden" name="status" value="open">' in page.content.decode()


def test_the_new_exports_form_may_be_posted(browser):
    """With as many chosen tickets as no address could carry."""
    answer = browser.post(
        f"{URL}new/",
        {"repeat": "1", "key": "x", "id": ",".join(map(str, range(1, 901))), "columns": ["", "id"]},
    )
    assert answer.status_code == 200
    assert answer.context["form"]["columns"].value() == ["id"]
    assert answer.context["form"].errors == {}
    assert answer.context["shown"] == [("Tickets", "900 chosen tickets")]
    assert 'name="key"' not in answer.content.decode()
    assert not ScheduledExport.objects.exists()


def test_it_is_scheduled_as_it_was_said(browser, alice):
    answer = browser.post(f"{URL}new/", form())
    assert answer.url == URL
    scheduled = ScheduledExport.objects.get()
    assert (scheduled.owner, scheduled.name) == (alice, "Open tickets")
    assert (scheduled.filters, scheduled.columns) == ({"status": ["open"]}, ["id", "subject"])
    assert (scheduled.weekdays, scheduled.time_of_day) == ([1, 5], time(8))
    assert (scheduled.zone, scheduled.delimiter, scheduled.time_zone) == ("Europe/Berlin", ";", "")
    assert waiting() == [(scheduled.revision, scheduled.next_run_at)]
    assert "“Open tickets” runs next on" in told(answer)


def test_a_form_sent_twice_schedules_once(browser):
    for _number in range(2):
        assert browser.post(f"{URL}new/", form(submission="abc")).status_code == 302
    assert ScheduledExport.objects.count() == len(waiting()) == 1


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": " "}, "This field is required."),
        ({"weekdays": []}, "Choose at least one day."),
        ({"rhythm": "monthly", "day_of_month": "32"}, "Choose a day from 1 to 31."),
        ({"zone": "Nowhere"}, "“Nowhere” is not a known time zone."),
        ({"time_of_day": "25:00"}, "Enter a valid time."),
        ({"columns": []}, "Choose at least one column."),
        ({"team": "999"}, "Team: Select a valid choice."),
        ({"row_kind": "x"}, "Select a valid choice."),
    ],
)
def test_what_cannot_be_comes_back_with_what_was_typed(browser, changes, complaint):
    answer = browser.post(f"{URL}new/", form(**{"delimiter": ";"} | changes))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert complaint in page
    assert '<option value=";" selected>' in page
    assert not ScheduledExport.objects.exists()


def test_too_many_are_refused_with_what_to_do(browser, settings):
    settings.TEAMDESK_SCHEDULES_PER_PERSON = 1
    browser.post(f"{URL}new/", form())
    answer = browser.post(f"{URL}new/", form())
    assert answer.status_code == 422
    assert "Delete one, or change it instead." in answer.content.decode()


# An existing one


def test_its_form_shows_it(browser, alice):
    scheduled = schedule(alice, weekdays=[1, 5], delimiter=";")
    fields = browser.get(f"{URL}{scheduled.pk}/edit/").context["form"]
    assert (fields["name"].value(), fields["weekdays"].value()) == ("Open tickets", [1, 5])
    assert (fields["delimiter"].value(), fields["day_of_month"].value()) == (";", 1)


def test_it_is_changed(browser, scheduled):
    answer = browser.post(
        f"{URL}{scheduled.pk}/edit/", form(name="Daily", rhythm="daily", status=["closed"])
    )
    assert answer.url == URL
    scheduled = reread(scheduled)
    assert (scheduled.name, scheduled.rhythm, scheduled.weekdays) == ("Daily", "daily", [])
    assert scheduled.filters == {"status": ["closed"]}
    assert waiting() == [(scheduled.revision, scheduled.next_run_at)]


def test_a_refused_change_says_why_and_shows_what_is(browser, scheduled):
    answer = browser.post(f"{URL}{scheduled.pk}/edit/", form(name="Other", zone="Nowhere"))
    assert answer.status_code == 422
    assert "“Nowhere” is not a known time zone." in answer.content.decode()
    assert answer.context["scheduled"].name == "Open tickets"
    assert reread(scheduled).zone == "Europe/Berlin"


def posted_to(page, address) -> dict:
    """What the page's button that leads there sends."""
    assert f'formaction="{address}"' in page.content.decode()
    sent = {"repeat": ["1"]}
    for name, value in page.context["choices"]:
        sent.setdefault(name, []).append(value)
    return sent


def test_other_tickets_come_from_a_new_one(browser, scheduled):
    """The way to other filters: the list, Export, Repeat, and there the one that exists."""
    address = f"{URL}{scheduled.pk}/edit/"
    new = browser.get(f"{URL}new/?status=closed&columns=id")
    page = browser.post(address, posted_to(new, address))
    assert page.status_code == 200
    assert page.context["shown"] == [("Status", "closed")]
    assert page.context["form"]["columns"].value() == ["id"]
    assert page.context["form"]["name"].value() == "Open tickets"
    assert reread(scheduled).filters == {"status": ["open"]}  # not yet


def test_all_tickets_are_other_tickets_too(browser, scheduled):
    address = f"{URL}{scheduled.pk}/edit/"
    page = browser.post(address, posted_to(browser.get(f"{URL}new/"), address))
    assert page.context["shown"] == []
    assert browser.get(f"{address}?x=1").context["shown"] == [("Status", "open")]


def test_filters_that_do_not_fit_any_more_are_said_on_its_form(browser, alice, support, billing):
    scheduled = schedule(alice, filters={"team": [str(support.pk)]})
    billing.memberships.create(user=alice, role="viewer")
    support.memberships.filter(user=alice).delete()
    page = browser.get(f"{URL}{scheduled.pk}/edit/").content.decode()
    assert "Team: Select a valid choice." in page
