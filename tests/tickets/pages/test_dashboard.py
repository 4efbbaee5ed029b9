"""The dashboard: each number is how many tickets the list behind it has, for whoever looks."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.http import QueryDict
from django.utils import timezone

from tests.exports import stock
from tickets.dashboard.figures import Dashboard
from tickets.dashboard.period import Period
from tickets.filters import TicketFilter
from tickets.models import Ticket

URL = "/dashboard/"


def figures(answer) -> dict[str, int]:
    """The numbers on the page by the query of the list they lead to."""
    found = re.findall(
        r'<a class="figure-link" href="/tickets/\?([^"]*)">([0-9,]+)</a>', answer.content.decode()
    )
    return {unescape(query): int(number.replace(",", "")) for query, number in found}


@pytest.fixture
def teams(support, billing):
    return [support, billing]


@pytest.fixture
def many(alice, bob, charlie, teams):
    return stock.fill(teams, [alice, bob, charlie], count=300)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/St_Johns"])
@pytest.mark.parametrize("query", ["", "days=7", "days=90", "team={support}&days=30"])
@pytest.mark.parametrize("who", ["alice", "vera", "root", "charlie"])
def test_every_number_is_that_of_the_list_behind_it(
    client, request, many, vera, support, who, query, zone
):
    person = request.getfixturevalue(who)
    person.time_zone = zone
    person.save()
    client.force_login(person)
    answer = client.get(f"{URL}?{query.format(support=support.pk)}")
    shown = figures(answer)
    assert len(shown) > 15
    with timezone.override(zone):
        for parameters, number in shown.items():
            behind = TicketFilter(QueryDict(parameters), person)
            assert not behind.errors, parameters
            assert behind.queryset().count() == number, parameters
    # And one that the list itself shows.
    parameters, number = max(shown.items(), key=lambda item: item[1])
    assert client.get(f"/tickets/?{parameters}").context["total"] == number


def test_it_counts_only_what_one_may_see(client, many, bob, support):
    client.force_login(bob)
    mine = Ticket.objects.filter(team=support).live().count()
    assert client.get(URL).context["now"]["open"].number == mine < len(many) / 2


def test_two_teams_are_shown_together_or_one(client, many, bob, support, billing):
    billing.memberships.create(user=bob, role="viewer")
    client.force_login(bob)
    counts = [
        client.get(f"{URL}?team={team}").context["now"]["open"].number
        for team in ("", support.pk, billing.pk)
    ]
    assert counts[0] == counts[1] + counts[2] == Ticket.objects.live().count()


@pytest.mark.parametrize("team", ["{billing}", "999999999999999999999", "x", "-1", "٣", "\0"])
def test_a_team_that_is_not_ones_own_is_said_and_shows_all_of_ones_own(
    client, many, bob, billing, team
):
    client.force_login(bob)
    usual = figures(client.get(URL))
    answer = client.get(URL, {"team": team.format(billing=billing.pk)})
    assert "or you do not belong to it" in answer.content.decode()
    assert figures(answer) == usual


@pytest.mark.parametrize("days", ["0", "-7", "1e3", "x", "365", "\0"])
def test_another_period_is_the_usual_one(client, many, bob, days):
    client.force_login(bob)
    assert client.get(URL, {"days": days}).context["period"].days == 30


def test_who_has_no_team_is_told_what_would_be_here(client, charlie, billing):
    billing.memberships.all().delete()
    client.force_login(charlie)
    answer = client.get(URL)
    assert "You do not belong to a team yet" in answer.content.decode()
    assert figures(answer) == {}


def test_a_team_without_tickets_shows_zeros(client, bob):
    client.force_login(bob)
    page = client.get(URL).content.decode()
    assert "Nothing in this time." in page
    assert page.count("–") == 4  # neither of the two times has a median or a most


def opened(team, *, hours: dict, **fields) -> Ticket:
    """Opened two days ago; ``hours``: after how many each thing happened."""
    at = timezone.now() - timedelta(days=2)
    times = {field: at + timedelta(hours=count) for field, count in hours.items()}
    return Ticket.objects.create(team=team, subject="Fire", created_at=at, **times, **fields)


def test_median_and_what_nine_of_ten_took(client, support, bob):
    for hours in (1, 2, 3, 4, 10):
        opened(support, hours={"first_responded_at": hours})
    opened(support, hours={"resolved_at": 30}, status="resolved", assignee=bob)
    opened(support, hours={})
    shown = Dashboard(bob, None, Period.of("7"))
    responses, took = shown.first_responses()
    assert (responses.number, took.median) == (5, 3 * 3600)
    assert took.most == pytest.approx((4 + 0.6 * 6) * 3600)  # between the fourth and the fifth
    resolutions, took = shown.resolutions()
    assert (resolutions.number, took.median, took.most) == (1, 30 * 3600, 30 * 3600)
    (agent,) = [each for each in shown.agents() if each.person == bob]
    assert (agent.live.number, agent.resolved.number) == (0, 1)
    assert agent.resolution_median == 30 * 3600


def test_one_that_was_answered_before_it_was_opened_took_no_time(support, bob):
    """As an imported ticket may have been."""
    opened(support, hours={"first_responded_at": -5})
    _figure, took = Dashboard(bob, None, Period.of("7")).first_responses()
    assert (took.median, took.most) == (0, 0)


def test_a_day_is_one_of_the_readers_zone(support, bob):
    """Half past eight in the evening of the 24th in London is the 25th in Kathmandu."""
    at = datetime(2026, 3, 24, 20, 30, tzinfo=UTC)
    Ticket.objects.create(team=support, subject="Fire", created_at=at)
    for zone, day in (("Europe/London", "2026-03-24"), ("Asia/Kathmandu", "2026-03-25")):
        with timezone.override(zone):
            period = Period(7, datetime(2026, 3, 26).date())
            busy = [day for day in Dashboard(bob, None, period).days() if day.created.number]
        assert [each.day.isoformat() for each in busy] == [day]


@pytest.mark.parametrize("days", [7, 30, 90])
def test_a_change_of_clocks_leaves_no_day_out(bob, days):
    with timezone.override("Europe/Berlin"):
        period = Period(days, datetime(2026, 3, 30).date())  # the clocks changed the day before
        each = [day.day for day in Dashboard(bob, None, period).days()]
        assert len(set(each)) == len(each) == days
        hours = (period.ends_at.timestamp() - period.begins_at.timestamp()) / 3600
    assert hours == days * 24 - 1


def test_a_tag_like_any_text_leads_to_its_list(client, support, bob):
    for tag in ("a&b=c", "100%", "<b>", "月末", "two words", "#1"):
        Ticket.objects.create(team=support, subject="Fire", tags=[tag, "all"])
    client.force_login(bob)
    answer = client.get(URL)
    assert "<b></span>" not in answer.content.decode()
    by_tag = {each.tag: each.live for each in answer.context["tags"]}
    assert by_tag["all"].number == 6 and len(by_tag) == 7
    for figure in by_tag.values():
        listed = client.get(f"/tickets/?{figure.query}")
        assert listed.context["total"] == figure.number


def test_the_number_of_queries_does_not_grow(client, many, root, django_assert_num_queries):
    client.force_login(root)
    client.get(URL)
    with django_assert_num_queries(13):
        client.get(URL)
