"""The file has exactly what the ticket list shows: the same tickets in the same order, for
whichever filters, person, zone and kind of row."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports.models import Export, RowKind
from tests.exports import stock
from tests.exports.conftest import records_of, reloaded, rows_offered
from tickets.filter_form import SORTS
from tickets.filters import TicketFilter
from tickets.models import Team, Ticket, TicketPriority, TicketStatus, User

pytestmark = pytest.mark.django_db(transaction=True)

# Of each kind of row: columns that tell its rows apart.
KEYS = {
    RowKind.TICKETS: ["id"],
    RowKind.CONVERSATION: ["id", "text"],
    RowKind.HISTORY: ["id", "at", "field"],
}


@pytest.fixture
def people(alice, bob, vera, charlie, root, support, billing):
    """By what they may see: one team in each role, another, two teams, all, none. A third team
    has tickets of its own."""
    dora = User.objects.create_user("dora")
    support.memberships.create(user=dora, role="agent")
    billing.memberships.create(user=dora, role="viewer")
    stranger = User.objects.create_user("stranger")
    third = Team.objects.create(name="Third", slug="third")
    stock.fill([support, billing, third], [alice, bob, charlie, dora])
    return [alice, bob, vera, charlie, dora, root, stranger]


def listed(user, filters) -> list[int]:
    """As the list's own filter object has them."""
    with timezone.override(user.zone):
        return list(TicketFilter(filters, user).queryset().values_list("pk", flat=True))


def shown_on_pages(client, user, filters) -> list[int]:
    """As the list's pages show them, one after the other."""
    client.force_login(user)
    ids, number = [], 1
    while True:
        answer = client.get("/tickets/", filters | {"page": number})
        page = answer.content.decode()
        ids += map(int, re.findall(r'<td class="number quiet shrink">#(\d+)</td>', page))
        if answer.context["page"].next is None:
            return ids
        number += 1


def exported(run, user, filters, row_kind=RowKind.TICKETS) -> Export:
    export = Export.objects.request(user, filters, KEYS[row_kind], row_kind=row_kind)
    return run(export)


def assert_rows(export, ids, row_kind, zone):
    """The file has these tickets' rows and the ledger says so."""
    expected = []
    for pk, each in stock.rows_by_hand(ids, row_kind):
        record = {"id": str(pk)}
        if row_kind == RowKind.CONVERSATION:
            record["text"] = guarded(each.body) if each else ""
        elif row_kind == RowKind.HISTORY:
            record["at"] = each.at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
            record["field"] = each.field_display
        expected.append(record)
    assert records_of(export) == expected
    assert export.rows == export.task.progress_done == len(expected)


def guarded(text: str) -> str:
    return f"'{text}" if text.startswith("=") else text


def filters_of(teams, people, tickets) -> st.SearchStrategy[dict]:
    """Any combination of the list's filters, with and without matches."""
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    days = st.integers(-25, 25).map(lambda n: (midnight + timedelta(days=n)).date().isoformat())
    moments = st.integers(-600, 600).map(lambda n: (midnight + timedelta(hours=n)).isoformat())
    naive = moments.map(lambda text: text.removesuffix("+00:00"))
    word = st.sampled_from([*stock.WORDS, "PRINT", "burns", "example", "%", "_", "#5", "7", "no"])

    def some(values):
        return st.lists(st.sampled_from(list(values)), min_size=1, max_size=3, unique=True)

    ids = st.lists(st.sampled_from(tickets), min_size=1, max_size=30)
    optional = {
        "id": st.one_of(ids, ids.map(lambda chosen: ",".join(map(str, chosen)))),
        "q": st.lists(word, min_size=1, max_size=2).map(" ".join),
        "status": some(TicketStatus.values),
        "priority": some(TicketPriority.values),
        "team": some(teams),
        "assignee": st.sampled_from(["me", "none", *people]),
        "tags": some(stock.TAGS).map(lambda tags: tags[:2]),
        "requester": st.sampled_from(["rita", "example", "李", "@", "nobody at all"]),
        "overdue": st.just("1"),
        "sort": st.sampled_from([sign + key for key in SORTS for sign in ("", "-")]),
    }
    for name in ("created", "updated", "due", "responded", "resolved"):
        for end in ("after", "before"):
            optional[f"{name}_{end}"] = st.one_of(days, moments, naive)
    # Few at once: all of them together select nothing.
    names = st.lists(st.sampled_from(list(optional)), max_size=4, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({n: optional[n] for n in chosen}))


@pytest.mark.timeout(900)
def test_any_filters_select_the_lists_tickets_in_its_order(people, run):
    """Where the list complains about a parameter and leaves it out, the file is not made: it would
    have more than was asked for."""
    teams = [str(pk) for pk in Team.objects.values_list("pk", flat=True)]
    ids = [str(person.pk) for person in people]
    tickets = list(Ticket.objects.values_list("pk", flat=True))  # also those that one may not see
    zones = ["UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"]
    everybody = {person: len(listed(person, {})) for person in people}
    found = []

    @settings(
        max_examples=300,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        st.sampled_from(people),
        filters_of(teams, ids, tickets),
        st.sampled_from(zones),
        st.sampled_from(RowKind.values),
    )
    def play(person, filters, zone, row_kind):
        person.time_zone = zone
        person.save(update_fields=["time_zone"])
        with timezone.override(person.zone):
            complaints = TicketFilter(filters, person).errors
        if complaints:
            with pytest.raises(ValidationError):
                exported(run, person, filters, row_kind)
            found.append("refused")
            return
        selected = listed(person, filters)
        export = exported(run, person, filters, row_kind)
        assert_rows(export, selected, row_kind, person.zone)
        with timezone.override(person.zone):
            assert rows_offered(person, filters, row_kind) == export.rows
        some = 0 < len(selected) < everybody[person]
        found.append("some" if some else "none" if not selected else "all")

    play()
    # Or the examples would prove little.
    assert found.count("some") > 60, found
    assert {"refused", "none", "all"} < set(found)


@pytest.mark.parametrize("row_kind", RowKind.values)
@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"sort": "subject"},
        {"q": "fire", "sort": "-priority"},
        {"status": ["open", "pending"], "sort": "due"},
        {"status": ["closed"], "priority": ["urgent", "high"], "sort": "-due"},
        {"assignee": "me"},
        {"assignee": "none", "tags": ["red"]},
        {"overdue": "1", "sort": "status"},
        {"requester": "example", "created_after": "2001-01-01"},
    ],
)
def test_the_file_has_what_the_pages_show(client, people, run, filters, row_kind):
    for person in people:
        ids = shown_on_pages(client, person, filters)
        export = exported(run, person, filters, row_kind)
        assert_rows(export, ids, row_kind, UTC)


def test_the_pages_of_the_stock_show_something_and_not_all(client, people):
    """What the tests above stand on."""
    alice, *_, root, stranger = people
    everything = shown_on_pages(client, root, {})
    assert len(everything) == len(set(everything)) == 60
    assert len(shown_on_pages(client, alice, {})) == 20
    assert shown_on_pages(client, stranger, {}) == []
    assert 0 < len(shown_on_pages(client, root, {"q": "fire"})) < 60


def test_a_day_with_a_change_of_clocks_is_as_long_as_in_the_list(client, alice, ticket, run):
    """The last day of summer time has 25 hours, and the file has the tickets of all of them."""
    alice.time_zone = "Europe/Berlin"
    alice.save()
    for hour in range(-1, 26):
        start = datetime(2026, 10, 24, 22, tzinfo=UTC)
        ticket(due_at=start + timedelta(hours=hour))
    filters = {"due_after": "2026-10-25", "due_before": "2026-10-25", "sort": "due"}
    ids = shown_on_pages(client, alice, filters)
    assert len(ids) == 25
    assert_rows(reloaded(exported(run, alice, filters)), ids, RowKind.TICKETS, UTC)
