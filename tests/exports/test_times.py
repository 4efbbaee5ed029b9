"""Times in the file: by the clocks of its zone, on both sides of each change of them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from exports.models import Export, RowKind
from tests.exports.conftest import records_of, table_of
from tickets.models import EventKind, Ticket, TicketEvent

pytestmark = pytest.mark.django_db(transaction=True)

# When clocks change: forward in spring, back in autumn; Lord Howe's by half an hour.
CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00:00", "2026-10-25T01:00:00"),
    "America/New_York": ("2026-03-08T07:00:00", "2026-11-01T06:00:00"),
    "Australia/Lord_Howe": ("2026-10-03T15:30:00", "2026-04-04T15:00:00"),
}
TIMES = ["due_at", "created_at", "updated_at", "first_responded_at", "resolved_at", "closed_at"]
in_each_zone = pytest.mark.parametrize("zone", CHANGES)


def around(zone: str) -> list[datetime]:
    """The seconds before and of each change, and the moments that clocks show twice."""
    return [
        datetime.fromisoformat(change).replace(tzinfo=UTC) + timedelta(seconds=seconds)
        for change in CHANGES[zone]
        for seconds in (-5400, -3600, -1800, -900, -1, 0, 1, 900, 1800, 3599, 3600)
    ]


def local(moment: datetime, zone: str) -> str:
    return moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S")


def offset(moment: datetime, zone: str) -> str:
    return "UTC" + moment.astimezone(ZoneInfo(zone)).isoformat()[-6:]


def exported(run, person, columns, row_kind, zone) -> Export:
    return run(
        Export.objects.request(person, {"sort": "id"}, columns, row_kind=row_kind, time_zone=zone)
    )


@in_each_zone
def test_the_clocks_of_these_zones_do_change_there(zone):
    for change in CHANGES[zone]:
        moment = datetime.fromisoformat(change).replace(tzinfo=UTC)
        before = offset(moment - timedelta(seconds=1), zone)
        assert before != offset(moment, zone)


@in_each_zone
def test_every_time_of_a_ticket_and_its_offset_are_right(alice, ticket, run, zone):
    moments = around(zone)
    for moment in moments:
        ticket(**dict.fromkeys(TIMES, moment))
    keys = [key for name in TIMES for key in (name, f"{name}_offset")]
    table = table_of(exported(run, alice, keys, RowKind.TICKETS, zone))
    assert table[0][:2] == [f"Due ({zone})", "Due: offset from UTC"]
    assert table[1:] == [[local(at, zone), offset(at, zone)] * len(TIMES) for at in moments]


@in_each_zone
def test_every_time_of_a_message_and_its_offset_are_right(alice, ticket, run, zone):
    talked_about, moments = ticket(), around(zone)
    for moment in moments:
        talked_about.comments.create(body="Hello", created_at=moment)
    keys = ["written_at", "written_at_offset"]
    table = table_of(exported(run, alice, keys, RowKind.CONVERSATION, zone))
    assert table[0] == [f"Written ({zone})", "Written: offset from UTC"]
    assert table[1:] == [[local(at, zone), offset(at, zone)] for at in sorted(moments)]


@in_each_zone
def test_every_time_of_a_change_and_its_offset_are_right(alice, ticket, run, zone):
    """A due date among other values says its offset itself."""
    changed, moments = ticket(), around(zone)
    for moment in moments:
        value = moment.isoformat()
        TicketEvent.objects.create(
            ticket=changed,
            kind=EventKind.CHANGED,
            field="due_at",
            old_value=value,
            new_value=value,
            old_text="as it was",
            new_text="as it was",
            version=1,
            at=moment,
        )
    keys = ["at", "at_offset", "before", "after"]
    table = table_of(exported(run, alice, keys, RowKind.HISTORY, zone))
    assert table[0] == [f"When ({zone})", "When: offset from UTC", "Before", "After"]
    assert table[1:] == [
        [local(at, zone), offset(at, zone), *[f"{local(at, zone)} {offset(at, zone)}"] * 2]
        for at in sorted(moments)
    ]


@in_each_zone
def test_the_time_that_comes_twice_is_told_apart(alice, ticket, run, zone):
    """By the offset beside it, or in UTC, in which no time comes twice. The local time by itself
    stays what spreadsheets calculate with."""
    back = datetime.fromisoformat(CHANGES[zone][1]).replace(tzinfo=UTC)
    earlier = back - timedelta(minutes=20)
    later = earlier + timedelta(minutes=30 if zone == "Australia/Lord_Howe" else 60)
    assert local(earlier, zone) == local(later, zone)
    ticket(due_at=earlier), ticket(due_at=later)

    keys = ["due_at", "due_at_offset"]
    first, second = records_of(exported(run, alice, keys, RowKind.TICKETS, zone))
    assert first["due_at"] == second["due_at"] == local(earlier, zone)
    assert [first["due_at_offset"], second["due_at_offset"]] == [
        offset(earlier, zone),
        offset(later, zone),
    ]
    assert first["due_at_offset"] != second["due_at_offset"]

    first, second = table_of(exported(run, alice, ["due_at"], RowKind.TICKETS, "UTC"))[1:]
    assert [first, second] == [[local(earlier, "UTC")], [local(later, "UTC")]]
    assert first != second


@pytest.mark.parametrize(
    ("zone", "moment", "told"),
    [
        ("UTC", "2026-07-01T12:00:00", "UTC+00:00"),
        ("America/St_Johns", "2026-07-01T12:00:00", "UTC-02:30"),
        ("Asia/Kathmandu", "2026-07-01T12:00:00", "UTC+05:45"),
        ("Pacific/Kiritimati", "2026-07-01T12:00:00", "UTC+14:00"),
        ("Africa/Monrovia", "1971-12-31T12:00:00", "UTC-00:44:30"),
    ],
)
def test_an_offset_is_told_to_the_second(alice, ticket, run, zone, moment, told):
    ticket(due_at=datetime.fromisoformat(moment).replace(tzinfo=UTC))
    ticket(due_at=None)
    table = table_of(exported(run, alice, ["team", "due_at_offset"], RowKind.TICKETS, zone))
    assert table[1:] == [["Support", told], ["Support", ""]]


def test_the_files_zone_is_not_that_of_the_filters(alice, ticket, run):
    """Days stay those that she saw in the list; only the times in the file are Berlin's."""
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    ticket(due_at=datetime(2026, 5, 4, 15, 59, tzinfo=UTC))
    ticket(due_at=datetime(2026, 5, 4, 16, 0, tzinfo=UTC))
    export = Export.objects.request(
        alice, {"due_after": "2026-05-05"}, ["due_at"], time_zone="Europe/Berlin"
    )
    assert table_of(run(export)) == [["Due (Europe/Berlin)"], ["2026-05-04 18:00:00"]]
    assert Ticket.objects.count() == 2
