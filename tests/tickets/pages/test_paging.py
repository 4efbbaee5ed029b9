"""Pages of the list by cursor: every order, both directions, while tickets come, go and move."""

import random
from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from django.core import signing
from django.utils import timezone

from tickets.filter_form import SORTS
from tickets.filters import TicketFilter
from tickets.models import Team, Ticket, TicketPriority, TicketStatus
from tickets.paging import Place, page_of
from tickets.views import list as list_view

SIZE = 4
ORDERS = [sign + key for key in SORTS for sign in ("", "-")]
WORDS = ["Ärger", "ärger", "zebra", "ORDER", "100 % _", "打印机", "😀", "a" * 200]


def many(support, seed):
    """About thirty tickets with few values, so that many are equal in every order."""
    dice = random.Random(seed)
    now = timezone.now().replace(microsecond=dice.randrange(10**6))
    times = [now - timedelta(days=n, microseconds=n) for n in range(4)]
    return Ticket.objects.bulk_create(
        Ticket(
            team=support,
            subject=dice.choice(WORDS),
            status=dice.choice(TicketStatus.values),
            priority=dice.choice(TicketPriority.values),
            due_at=dice.choice([None, None, *times]),
            created_at=dice.choice(times),
            updated_at=dice.choice(times),
        )
        for _ in range(dice.randrange(25, 35))
    )


def pages(chosen, way, start, most=50):
    """The pages from this one on, along ``next`` or ``previous``."""
    page, found = start, [start]
    while (parameters := getattr(page, way)) is not None:
        total = chosen.queryset().count()
        page = page_of(chosen, parameters, SIZE, total)
        assert not page.complaint
        found.append(page)
        assert len(found) < most
    return found


def ids(found):
    return [ticket.pk for page in found for ticket in page]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sort", ORDERS)
def test_pages_make_the_list_in_every_order_there_and_back(support, bob, sort, seed):
    many(support, seed)
    chosen = TicketFilter({"sort": sort}, bob)
    whole = list(chosen.queryset().values_list("pk", flat=True))
    there = pages(chosen, "next", page_of(chosen, {}, SIZE, len(whole)))
    assert ids(there) == whole
    assert [page.start for page in there] == list(range(1, len(whole) + 1, SIZE))
    last = page_of(chosen, there[0].last, SIZE, len(whole))
    assert ids([last]) == whole[-SIZE:]
    for end in (there[-1], last):
        back = pages(chosen, "previous", end)[::-1]
        assert ids(back) == whole
        assert [page.start for page in back] == [
            whole.index(page.tickets[0].pk) + 1 for page in back
        ]
    assert there[0].previous is there[-1].next is there[0].first is there[-1].last is None


@pytest.mark.parametrize("sort", ORDERS)
def test_what_comes_or_goes_meanwhile_shifts_no_page(support, bob, sort):
    many(support, 7)
    chosen = TicketFilter({"sort": sort}, bob)
    whole = list(chosen.queryset().values_list("pk", flat=True))
    first = page_of(chosen, {}, SIZE, len(whole))
    second = page_of(chosen, first.next, SIZE, len(whole))
    # One that was seen is gone, the one the cursor stands beside is gone, more come at both ends.
    Ticket.objects.filter(pk__in=[whole[0], whole[SIZE - 1]]).delete()
    many(support, 8)
    came = set(Ticket.objects.values_list("pk", flat=True)) - set(whole)
    again = page_of(chosen, first.next, SIZE, chosen.queryset().count())
    rest = [pk for pk in ids(pages(chosen, "next", again)) if pk not in came]
    assert rest == whole[SIZE:]
    before = [pk for pk in ids(pages(chosen, "previous", second)[1:]) if pk not in came]
    assert sorted(before) == sorted(set(whole[:SIZE]) - {whole[0], whole[SIZE - 1]})


def test_a_ticket_that_moved_is_the_only_one_seen_twice_or_not_at_all(support, bob):
    many(support, 3)
    chosen = TicketFilter({"sort": "-updated"}, bob)
    whole = list(chosen.queryset().values_list("pk", flat=True))
    first = page_of(chosen, {}, SIZE, len(whole))
    moved = whole[SIZE + 1]
    Ticket.objects.filter(pk=moved).update(updated_at=timezone.now())
    seen = ids(pages(chosen, "next", page_of(chosen, first.next, SIZE, len(whole))))
    assert seen == [pk for pk in whole[SIZE:] if pk != moved]


def test_a_row_changed_to_have_no_due_date_is_where_those_are(support, bob):
    many(support, 5)
    chosen = TicketFilter({"sort": "due"}, bob)
    whole = list(chosen.queryset().values_list("pk", flat=True))
    first = page_of(chosen, {}, SIZE, len(whole))
    Ticket.objects.filter(pk=whole[SIZE - 1]).update(due_at=None)
    seen = ids(pages(chosen, "next", page_of(chosen, first.next, SIZE, len(whole))))
    assert sorted(seen) == sorted(whole[SIZE - 1 :])


FORGED = {
    "nonsense": "nonsense",
    "empty parts": ":",
    "a cut one": Place("-updated").cursor()[:-1],
    "another salt": signing.Signer(salt="other").sign_object(["-updated", False, 1, None, 1]),
    "too few parts": signing.Signer(salt="tickets.paging").sign_object([]),
    "no list": signing.Signer(salt="tickets.paging").sign_object(7),
    "another order": Place("subject", pk=1, value="a").cursor(),
    "letters": "打印机\0😀",
    "long": "a" * 5000,
}


@pytest.mark.parametrize("cursor", FORGED.values(), ids=FORGED)
def test_a_forged_or_stale_cursor_is_the_first_page_with_a_complaint(
    client, make_ticket, bob, cursor
):
    make_ticket("Fire")
    client.force_login(bob)
    answer = client.get("/tickets/", {"cursor": cursor})
    assert answer.status_code == 200
    assert [ticket.subject for ticket in answer.context["page"]] == ["Fire"]
    assert "This place in the list is not known any more." in answer.content.decode()


def test_a_page_whose_tickets_are_gone_is_the_first_with_a_complaint(client, make_ticket, bob):
    made = [make_ticket(f"Ticket {n}") for n in range(3)]
    client.force_login(bob)
    cursor = Place("-updated", pk=made[0].pk, value=made[0].updated_at).cursor()
    answer = client.get("/tickets/", {"cursor": cursor})
    assert len(answer.context["page"].tickets) == 3
    assert "are elsewhere by now" in answer.content.decode()


def test_a_cursor_opens_nothing(make_ticket, client, charlie, bob):
    ticket = make_ticket("Secret")
    client.force_login(charlie)
    cursor = Place("-updated", True, ticket.pk, ticket.updated_at).cursor()
    assert "Secret" not in client.get("/tickets/", {"cursor": cursor}).content.decode()


def test_the_pages_links_carry_filters_and_order_and_need_no_script(
    client, make_ticket, bob, monkeypatch
):
    monkeypatch.setattr(list_view, "PER_PAGE", 2)
    for n in range(5):
        make_ticket(f"Ticket {n}", tags=["a"])
    client.force_login(bob)
    address, seen = "/tickets/?tags=a&sort=subject", []
    while address:
        answer = client.get(address)
        seen += [ticket.subject for ticket in answer.context["page"]]
        following = answer.context["pager"]["next"]
        if following:
            link = f'rel="next" href="?{following}"'.replace("&", "&amp;")
            assert link in answer.content.decode()
            parameters = parse_qs(following)
            del parameters["cursor"]
            assert parameters == {"tags": ["a"], "sort": ["subject"]}
        address = following and f"/tickets/?{following}"
    assert seen == [f"Ticket {n}" for n in range(5)]
    assert "5–5 of 5" in answer.content.decode()


def test_htmx_shows_the_address_of_the_page(client, make_ticket, bob, monkeypatch):
    monkeypatch.setattr(list_view, "PER_PAGE", 2)
    for n in range(5):
        make_ticket(f"Ticket {n}")
    client.force_login(bob)
    headers = {"HX-Request": "true", "HX-Target": "tickets"}
    following = client.get("/tickets/").context["pager"]["next"]
    assert client.get(f"/tickets/?{following}", headers=headers)["HX-Push-Url"] == (
        f"/tickets/?{following}"
    )
    assert client.get("/tickets/?page=2", headers=headers)["HX-Push-Url"] == "/tickets/?page=2"


def test_counting_stops_where_a_number_says_nothing_more(client, make_ticket, bob, monkeypatch):
    from tickets import counting
    from tickets.templatetags import teamdesk

    for module in (counting, list_view, teamdesk):
        monkeypatch.setattr(module, "MOST_COUNTED", 3)
    monkeypatch.setattr(list_view, "PER_PAGE", 2)
    made = [make_ticket(f"Ticket {n}").pk for n in range(7)]
    client.force_login(bob)
    answer = client.get("/tickets/?sort=id")
    text = answer.content.decode()
    assert "1–2 of 3+" in text
    assert "More than 3 tickets" in text
    last = client.get(f"/tickets/?{answer.context['pager']['last']}")
    assert [ticket.pk for ticket in last.context["page"]] == made[-2:]
    assert "–" not in last.content.decode().partition('class="pager-text">')[2].partition("<")[0]


def test_page_is_still_a_number_for_those_who_write_one(support, bob):
    many(support, 1)
    chosen = TicketFilter({"sort": "id"}, bob)
    whole = list(chosen.queryset().values_list("pk", flat=True))
    numbers = {"1": 0, "2": SIZE, "0": 0, "-5": 0, "x": 0, "²": 0}
    for number, start in numbers.items():
        page = page_of(chosen, {"page": number}, SIZE, len(whole))
        assert ids([page]) == whole[start : start + SIZE], number
    far = page_of(chosen, {"page": "9" * 50}, SIZE, len(whole))
    assert far.tickets[-1].pk == whole[-1]
    assert ids(pages(chosen, "previous", far)[::-1]) == whole


def test_other_teams_are_in_no_page(support, billing, bob):
    many(support, 2)
    many(billing, 2)
    chosen = TicketFilter({}, bob)
    seen = pages(chosen, "next", page_of(chosen, {}, SIZE, chosen.queryset().count()))
    assert {ticket.team for page in seen for ticket in page} == {Team.objects.get(pk=support.pk)}
