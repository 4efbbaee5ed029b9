"""When a scheduled export is due: days, months, and clocks that are changed."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports.models import ScheduledExport
from exports.models.recurring import moment_of

BERLIN = ZoneInfo("Europe/Berlin")


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


def due(rhythm, after, zone="Europe/Berlin", at=time(8), count=3, **days):
    """The next ``count`` times after a moment."""
    scheduled = ScheduledExport(rhythm=rhythm, time_of_day=at, zone=zone, **days)
    found = []
    for _number in range(count):
        after = scheduled.next_after(after)
        found.append(after)
    return found


# Clocks that are changed


def test_a_time_that_does_not_exist_is_the_first_moment_after_the_gap():
    """Berlin's clocks go from 2:00 to 3:00 on 29 March 2026."""
    assert due("daily", utc(2026, 3, 27, 12), at=time(2, 30)) == [
        utc(2026, 3, 28, 1, 30),
        utc(2026, 3, 29, 1),
        utc(2026, 3, 30, 0, 30),
    ]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (time(1, 59), utc(2026, 3, 29, 0, 59)),
        (time(2), utc(2026, 3, 29, 1)),
        (time(2, 59), utc(2026, 3, 29, 1)),
        (time(3), utc(2026, 3, 29, 1)),
        (time(3, 1), utc(2026, 3, 29, 1, 1)),
    ],
)
def test_at_the_edges_of_the_gap(at, expected):
    assert moment_of(date(2026, 3, 29), at, BERLIN) == expected


def test_a_time_that_exists_twice_is_the_first_and_once():
    """Berlin's clocks go from 3:00 back to 2:00 on 25 October 2026."""
    assert due("daily", utc(2026, 10, 23, 12), at=time(2, 30)) == [
        utc(2026, 10, 24, 0, 30),
        utc(2026, 10, 25, 0, 30),
        utc(2026, 10, 26, 1, 30),
    ]


def test_between_the_two_it_is_not_due_again():
    between = utc(2026, 10, 25, 1)
    assert due("daily", between, at=time(2, 30), count=1) == [utc(2026, 10, 26, 1, 30)]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (time(1, 59), utc(2026, 10, 24, 23, 59)),
        (time(2), utc(2026, 10, 25, 0)),
        (time(2, 59), utc(2026, 10, 25, 0, 59)),
        (time(3), utc(2026, 10, 25, 2)),
    ],
)
def test_at_the_edges_of_the_repeated_hour(at, expected):
    assert moment_of(date(2026, 10, 25), at, BERLIN) == expected


def test_eight_in_the_morning_stays_eight_in_the_morning():
    assert due("weekly", utc(2026, 3, 20), weekdays=[1], count=2) == [
        utc(2026, 3, 23, 7),
        utc(2026, 3, 30, 6),
    ]
    assert due("weekly", utc(2026, 10, 18), weekdays=[1], count=2) == [
        utc(2026, 10, 19, 6),
        utc(2026, 10, 26, 7),
    ]


@pytest.mark.parametrize(
    ("zone", "day", "at", "expected"),
    [
        # Half an hour: 2:00 is followed by 2:30.
        ("Australia/Lord_Howe", date(2026, 10, 4), time(2, 15), utc(2026, 10, 3, 15, 30)),
        # At midnight, so that the day begins at 1:00.
        ("America/Sao_Paulo", date(2018, 11, 4), time(0, 30), utc(2018, 11, 4, 3)),
        # A whole day that never was.
        ("Pacific/Apia", date(2011, 12, 30), time(8), utc(2011, 12, 30, 10)),
        # In the summer of the south it is the other way round.
        ("America/Santiago", date(2026, 4, 4), time(23, 30), utc(2026, 4, 5, 2, 30)),
    ],
)
def test_zones_with_rules_of_their_own(zone, day, at, expected):
    assert moment_of(day, at, ZoneInfo(zone)) == expected


# Days as they are where the clock is


@pytest.mark.parametrize(
    ("zone", "at", "expected"),
    [
        ("Pacific/Kiritimati", time(0, 30), utc(2026, 12, 6, 10, 30)),  # UTC has Sunday yet
        ("Pacific/Kiritimati", time(23, 30), utc(2026, 12, 7, 9, 30)),
        ("Pacific/Auckland", time(8), utc(2026, 12, 6, 19)),
        ("Pacific/Honolulu", time(0, 30), utc(2026, 12, 7, 10, 30)),
        ("Pacific/Honolulu", time(23, 30), utc(2026, 12, 8, 9, 30)),  # UTC has Tuesday already
        ("America/New_York", time(20), utc(2026, 12, 8, 1)),
        ("UTC", time(0), utc(2026, 12, 7)),
    ],
)
def test_monday_is_the_zones_monday(zone, at, expected):
    first = due("weekly", utc(2026, 12, 3), zone=zone, at=at, weekdays=[1], count=2)
    assert first == [expected, expected + timedelta(days=7)]
    a_minute_before, then = expected - timedelta(minutes=1), expected
    monday = {"zone": zone, "at": at, "weekdays": [1], "count": 1}
    assert due("weekly", a_minute_before, **monday) == [expected]
    assert due("weekly", then, **monday) == [expected + timedelta(days=7)]


def test_several_days_of_the_week_follow_each_other():
    days = due("weekly", utc(2026, 12, 1, 12), weekdays=[2, 5, 7], count=4)
    assert [day.day for day in days] == [4, 6, 8, 11]


# Months


@pytest.mark.parametrize(
    ("day", "after", "expected"),
    [
        (31, utc(2027, 1, 1), [(1, 31), (2, 28), (3, 31), (4, 30)]),
        (30, utc(2027, 1, 1), [(1, 30), (2, 28), (3, 30), (4, 30)]),
        (29, utc(2027, 2, 1), [(2, 28), (3, 29), (4, 29), (5, 29)]),
        (29, utc(2028, 2, 1), [(2, 29), (3, 29), (4, 29), (5, 29)]),  # a leap year
        (1, utc(2026, 11, 30), [(12, 1), (1, 1), (2, 1), (3, 1)]),
    ],
)
def test_a_month_that_is_too_short_has_its_last_day(day, after, expected):
    found = due("monthly", after, day_of_month=day, count=4)
    assert [(each.month, each.day) for each in found] == expected


def test_the_last_day_of_a_month_is_the_zones():
    """31 December, 23:30 in New York is January in UTC."""
    found = due(
        "monthly", utc(2026, 12, 15), zone="America/New_York", at=time(23, 30), day_of_month=31
    )
    assert found == [utc(2027, 1, 1, 4, 30), utc(2027, 2, 1, 4, 30), utc(2027, 3, 1, 4, 30)]


# Whatever is chosen

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
ZONES += ["Pacific/Kiritimati", "Pacific/Honolulu", "America/Santiago", "Africa/Casablanca"]
rhythms = st.one_of(
    st.just({"rhythm": "daily"}),
    st.builds(
        lambda days: {"rhythm": "weekly", "weekdays": sorted(days)},
        st.sets(st.integers(1, 7), min_size=1),
    ),
    st.builds(lambda day: {"rhythm": "monthly", "day_of_month": day}, st.integers(1, 31)),
)


# Nothing here is about how long it takes, on whatever machine.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rhythm=rhythms,
    zone=st.sampled_from(ZONES),
    at=st.builds(time, st.integers(0, 23), st.integers(0, 59)),
    after=st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)),
)
def test_it_is_due_later_on_a_fitting_day_at_its_time_or_after_a_gap(rhythm, zone, at, after):
    after = after.replace(tzinfo=UTC)
    scheduled = ScheduledExport(time_of_day=at, zone=zone, **rhythm)
    moment = scheduled.next_after(after)
    assert after < moment <= after + timedelta(days=32)
    local = moment.astimezone(ZoneInfo(zone))
    assert scheduled._falls_on(local.date())
    if local.time() != at:  # skipped by the clocks: a second before, they showed less
        assert local.time() > at
        before = (moment - timedelta(seconds=1)).astimezone(ZoneInfo(zone))
        assert before.utcoffset() != local.utcoffset()
        assert before.date() < local.date() or before.time() < at
    assert local.fold == 0
    # None is left out: from just before it, it is the next.
    assert scheduled.next_after(moment - timedelta(microseconds=1)) == moment


# In words


@pytest.mark.parametrize(
    ("rhythm", "words"),
    [
        ({"rhythm": "daily"}, "Every day at 8 a.m. (Europe/Berlin)"),
        (
            {"rhythm": "weekly", "weekdays": [1, 5]},
            "Every Monday, Friday at 8 a.m. (Europe/Berlin)",
        ),
        (
            {"rhythm": "monthly", "day_of_month": 1},
            "On day 1 of every month at 8 a.m. (Europe/Berlin)",
        ),
        (
            {"rhythm": "monthly", "day_of_month": 30},
            "On day 30 of every month, or its last, at 8 a.m. (Europe/Berlin)",
        ),
        (
            {"rhythm": "monthly", "day_of_month": 31},
            "On the last day of every month at 8 a.m. (Europe/Berlin)",
        ),
    ],
)
def test_it_is_said_in_words(rhythm, words):
    scheduled = ScheduledExport(time_of_day=time(8), zone="Europe/Berlin", **rhythm)
    with translation.override("en"):
        assert scheduled.rhythm_in_words() == words
