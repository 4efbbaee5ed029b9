"""Scheduling: the row and its first task, or neither."""

from datetime import UTC, time
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection
from django.utils import timezone, translation

from exports import columns
from exports.models import ScheduledExport
from tests.exports.schedules.conftest import exports, run_due, schedule, tasks

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_waits_in_the_ledger_for_its_first_time(scheduled, alice):
    task = tasks().get()
    assert (task.status, task.owner) == ("WAITING", alice)
    assert task.run_at == scheduled.next_run_at > timezone.now()
    assert task.payload == {"schedule": scheduled.pk, "revision": scheduled.revision}
    local = scheduled.next_run_at.astimezone(ZoneInfo("Europe/Berlin"))
    assert (local.isoweekday(), local.time()) == (1, time(8))
    assert (scheduled.is_paused, scheduled.last_export) == (False, None)
    assert scheduled.filters_shown == [["Status", "open"]]


def test_its_zone_is_its_owners_unless_another_is_chosen(alice):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    scheduled = ScheduledExport.objects.schedule(
        alice, name="Daily", rhythm="daily", time_of_day=time(8)
    )
    assert scheduled.zone == scheduled.filters_zone == "Asia/Shanghai"
    assert scheduled.next_run_at.astimezone(UTC).time() == time(0)
    assert schedule(alice, zone="UTC").next_run_at.astimezone(UTC).time() == time(8)


@pytest.mark.parametrize(
    ("choices", "complaint"),
    [
        ({"name": "  "}, {"name": ["Give it a name."]}),
        ({"name": "x" * 101}, {"name": ["A name has at most 100 characters."]}),
        ({"rhythm": "hourly"}, {"rhythm": ["Choose how often."]}),
        ({"weekdays": []}, {"weekdays": ["Choose at least one day."]}),
        ({"weekdays": [0]}, {"weekdays": ["Days of the week are numbered from 1 to 7."]}),
        (
            {"rhythm": "monthly", "day_of_month": 32},
            {"day_of_month": ["Choose a day from 1 to 31."]},
        ),
        ({"rhythm": "monthly"}, {"day_of_month": ["Choose a day from 1 to 31."]}),
        ({"zone": "Mars/Olympus"}, {"zone": ["“Mars/Olympus” is not a known time zone."]}),
        ({"zone": ""}, {"zone": ["Choose a time zone."]}),
        ({"time_zone": "localtime"}, {"time_zone": ["“localtime” is not a known time zone."]}),
        ({"file_format": "pdf"}, {"file_format": ["Choose one of those that are offered."]}),
        ({"delimiter": "x"}, {"delimiter": ["Choose one of those that are offered."]}),
        ({"row_kind": "x"}, {"row_kind": ["Choose one of those that are offered."]}),
    ],
)
def test_it_refuses_what_cannot_be(alice, choices, complaint):
    with pytest.raises(ValidationError) as refused:
        schedule(alice, **choices)
    assert refused.value.message_dict == complaint
    assert not ScheduledExport.objects.exists() and not tasks().exists()


@pytest.mark.parametrize(
    "choices", [{"filters": {"team": ["999"]}}, {"columns": ["secret"]}, {"columns": []}]
)
def test_it_refuses_filters_and_columns_that_do_not_exist(alice, choices):
    with pytest.raises(ValidationError):
        schedule(alice, **choices)
    assert not ScheduledExport.objects.exists() and not tasks().exists()


def test_a_choice_that_nobody_knows_is_a_mistake_of_the_program(alice):
    with pytest.raises(TypeError, match="has no colour"):
        schedule(alice, colour="red")


def test_who_sees_no_team_has_nothing_to_schedule(alice, support):
    support.memberships.filter(user=alice).delete()
    with pytest.raises(ValidationError, match="does not belong to any team"):
        schedule(alice, filters={})
    assert not ScheduledExport.objects.exists()


def test_what_the_rhythm_has_no_use_for_is_not_kept(alice):
    daily = schedule(alice, rhythm="daily", day_of_month=7)
    assert (daily.weekdays, daily.day_of_month) == ([], None)
    monthly = schedule(alice, rhythm="monthly", day_of_month=7)
    assert (monthly.weekdays, monthly.day_of_month) == ([], 7)


def test_a_person_has_so_many_and_no_more(alice, bob, settings):
    settings.TEAMDESK_SCHEDULES_PER_PERSON = 2
    schedule(alice), schedule(alice)
    with pytest.raises(ValidationError, match="You have 2 scheduled exports already"):
        schedule(alice)
    schedule(bob)
    assert ScheduledExport.objects.of(alice).count() == 2


def test_two_at_once_count_one_after_the_other(alice, settings, actor):
    settings.TEAMDESK_SCHEDULES_PER_PERSON = 1
    here, there = actor("here"), actor("there")
    here.begin()
    here.do(schedule, alice)
    second = there.start(schedule, alice)
    there.wait_until_blocked()
    here.commit()
    with pytest.raises(ValidationError, match="already"):
        second.result(30)
    assert ScheduledExport.objects.count() == tasks().count() == 1


@pytest.mark.parametrize("table", ["exports_scheduledexport", "tasks_backgroundtask"])
def test_all_or_nothing(alice, table):
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no room'; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER refuse AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    try:
        with pytest.raises(DatabaseError, match="no room"):
            schedule(alice)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")
    assert not ScheduledExport.objects.exists() and not tasks().exists()


def test_the_file_is_asked_for_as_it_was_chosen(alice):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    scheduled = schedule(
        alice,
        filters={"created_after": "2026-01-01"},
        file_format="csv.gz",
        delimiter=";",
        time_zone="America/New_York",
    )
    alice.time_zone = "Europe/Berlin"  # she moves; her days stay those that she saw
    alice.save()
    run_due(scheduled)
    export = exports().get()
    assert (export.requester, export.columns) == (alice, ["id", "subject"])
    assert (export.file_format, export.delimiter) == ("csv.gz", ";")
    assert (export.time_zone, export.filters_zone) == ("America/New_York", "Asia/Shanghai")


def test_without_a_zone_of_the_file_it_is_the_owners_of_then(alice):
    scheduled = schedule(alice)
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    run_due(scheduled)
    assert exports().get().time_zone == "Asia/Shanghai"


def test_its_language_is_that_of_the_page_it_was_made_on(alice):
    """A worker has no browser to ask."""
    with translation.override("zh-hans"):
        scheduled = schedule(alice)
    run_due(scheduled)
    assert exports().get().language == "zh-hans"
    alice.language = "en"
    alice.save()
    run_due(scheduled)
    assert exports().last().language == "en"


def test_each_kind_of_row_has_columns_of_its_own(alice):
    scheduled = schedule(alice, row_kind="history", columns=None)
    assert scheduled.columns == columns.chosen(None, "history")
    run_due(scheduled)
    export = exports().get()
    assert (export.row_kind, export.columns) == ("history", scheduled.columns)
    with pytest.raises(ValidationError):
        scheduled.edit(by=alice, row_kind="tickets")  # its columns would not fit
    scheduled.edit(by=alice, row_kind="tickets", columns=["id"])
    assert ScheduledExport.objects.get().columns == ["id"]
