"""Numbers of tickets, each with the filter whose list has just these tickets.

A number and its list agree because both are made of the same parameters and by the same rules: days
of the reader's zone, and what the reader may see.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from django.db.models import Count, F, Func, Q, QuerySet, TextField
from django.db.models.functions import Now, TruncDate

from tickets.filters import pairs
from tickets.models import Ticket, User
from tickets.models.ticket_status import LIVE_STATUSES

from .lengths import LENGTH, Lengths, Percentiles, lengths
from .period import Period, start_of

LIVE = {"status": [str(status) for status in LIVE_STATUSES]}
# Days since a ticket was opened, from and to; the last is open-ended.
AGES = ((0, 0), (1, 2), (3, 6), (7, 29), (30, 89), (90, None))
MOST_AGENTS, MOST_TAGS = 50, 12

_IS_LIVE = Q(status__in=LIVE_STATUSES)


@dataclass(frozen=True)
class Figure:
    number: int
    query: str  # of the list of these tickets


@dataclass(frozen=True)
class Day:
    day: date
    created: Figure
    resolved: Figure


@dataclass(frozen=True)
class AgentFigures:
    """``person`` None: nobody's."""

    person: User | None
    live: Figure
    overdue: Figure
    resolved: Figure
    resolution_median: float | None  # seconds


@dataclass(frozen=True)
class TagFigures:
    tag: str
    live: Figure
    created: Figure


class Dashboard:
    """Of the tickets of ``team``, or of all teams that ``user`` may see. Every property asks once.

    Args:
        team: one that the user may see, or None.
    """

    def __init__(self, user, team, period: Period):
        self.period = period
        self._tickets = Ticket.objects.visible_to(user)
        self._of_team: dict = {}
        if team:
            self._tickets = self._tickets.filter(team=team)
            self._of_team = {"team": [str(team.pk)]}
        first = period.first.isoformat()
        self._created = {"created_after": first}
        self._responded = {"responded_after": first}
        self._resolved = {"resolved_after": first}

    def now(self) -> tuple[dict[str, Figure], list[tuple[tuple, Figure]]]:
        """Of live tickets: those that want something, by name; and how many are how old, by the
        bounds of ``AGES``."""
        today = self.period.today
        wanting = {
            "open": (Q(), {}),
            "unassigned": (Q(assignee=None), {"assignee": "none"}),
            "overdue": (Q(due_at__lt=Now()), {"overdue": "1"}),
            "due_today": (
                Q(due_at__gte=start_of(today), due_at__lt=self.period.ends_at),
                {"due_after": today.isoformat(), "due_before": today.isoformat()},
            ),
        }
        by_age = {bounds: self._of_age(*bounds) for bounds in AGES}
        counts = self._tickets.live().aggregate(
            **{
                name: Count("pk", filter=condition) for name, (condition, _query) in wanting.items()
            },
            **{f"age_{low}": Count("pk", filter=by_age[low, high][0]) for low, high in AGES},
        )
        named = {
            name: self._figure(counts[name], LIVE | query)
            for name, (_condition, query) in wanting.items()
        }
        ages = [
            (bounds, self._figure(counts[f"age_{bounds[0]}"], LIVE | query))
            for bounds, (_condition, query) in by_age.items()
        ]
        return named, ages

    def days(self) -> list[Day]:
        """Created and resolved on each day of the period."""
        created = self._per_day("created_at")
        resolved = self._per_day("resolved_at")
        return [
            Day(
                day,
                self._figure(created.get(day, 0), _on("created", day)),
                self._figure(resolved.get(day, 0), _on("resolved", day)),
            )
            for day in self.period.each_day()
        ]

    def first_responses(self) -> tuple[Figure, Lengths]:
        """Of those whose first response was in the period: how many, and how long it took."""
        return self._lengths("first_responded_at", self._responded)

    def resolutions(self) -> tuple[Figure, Lengths]:
        return self._lengths("resolved_at", self._resolved)

    def agents(self) -> list[AgentFigures]:
        """Who has live tickets, or tickets that were resolved in the period; nobody's too."""
        resolved = self._within("resolved_at")
        rows = (
            self._tickets.filter(_IS_LIVE | resolved)
            .values("assignee")
            .annotate(
                live=Count("pk", filter=_IS_LIVE),
                overdue=Count("pk", filter=_IS_LIVE & Q(due_at__lt=Now())),
                resolved=Count("pk", filter=resolved),
                median=Percentiles(LENGTH["resolved_at"], filter=resolved),
            )
            .order_by("-live", "-resolved", "assignee")[:MOST_AGENTS]
        )
        people = User.objects.in_bulk([row["assignee"] for row in rows if row["assignee"]])
        return [self._agent(people.get(row["assignee"]), row) for row in rows]

    def tags(self) -> list[TagFigures]:
        """The tags that live tickets and those created in the period have most."""
        created = self._within("created_at")
        rows = (
            self._tickets.filter(_IS_LIVE | created)
            .annotate(tag=Func(F("tags"), function="unnest", output_field=TextField()))
            .values("tag")
            .annotate(live=Count("pk", filter=_IS_LIVE), created=Count("pk", filter=created))
            .order_by("-live", "-created", "tag")[:MOST_TAGS]
        )
        return [
            TagFigures(
                row["tag"],
                self._figure(row["live"], {"tags": [row["tag"]]} | LIVE),
                self._figure(row["created"], {"tags": [row["tag"]]} | self._created),
            )
            for row in rows
        ]

    # Parts

    def _figure(self, number: int, query: dict) -> Figure:
        return Figure(number, urlencode(pairs(query | self._of_team)))

    def _of_age(self, low: int, high: int | None) -> tuple[Q, dict]:
        last = self.period.today - timedelta(days=low)
        condition = Q(created_at__lt=start_of(last + timedelta(days=1)))
        query = {"created_before": last.isoformat()}
        if high is not None:
            first = self.period.today - timedelta(days=high)
            condition &= Q(created_at__gte=start_of(first))
            query["created_after"] = first.isoformat()
        return condition, query

    def _within(self, field: str) -> Q:
        return Q(**{f"{field}__gte": self.period.begins_at})

    def _per_day(self, field: str) -> dict[date, int]:
        counted: QuerySet = self._tickets.filter(self._within(field)).annotate(day=TruncDate(field))
        return dict(counted.values("day").annotate(count=Count("pk")).values_list("day", "count"))

    def _lengths(self, field: str, query: dict) -> tuple[Figure, Lengths]:
        found = lengths(self._tickets.filter(self._within(field)), field)
        return self._figure(found.count, query), found

    def _agent(self, person: User | None, row: dict) -> AgentFigures:
        who = {"assignee": str(person.pk) if person else "none"}
        median = row["median"]
        return AgentFigures(
            person,
            self._figure(row["live"], who | LIVE),
            self._figure(row["overdue"], who | {"overdue": "1"}),
            self._figure(row["resolved"], who | self._resolved),
            median[0] if median else None,
        )


def _on(name: str, day: date) -> dict:
    return {f"{name}_after": day.isoformat(), f"{name}_before": day.isoformat()}
