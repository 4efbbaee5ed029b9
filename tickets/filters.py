"""The one filter object of lists, links and exports: query parameters in, visible tickets out.

Whatever is wrong with a parameter is said in ``errors``, and that value is ignored; the filter
never raises and never shows what the person may not see.
"""

from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django import forms
from django.db.models import Case, Expression, F, IntegerField, OrderBy, Q, Value, When
from django.db.models.functions import Lower
from django.http import QueryDict
from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tickets.filter_form import MAX_IDS, Choices, TicketFilterForm
from tickets.models import Ticket, TicketPriority, TicketStatus
from tickets.models.searching import searched_text

MAX_WORDS = 20  # of a search; more are ignored
MAX_VALUES = 50  # of one repeatable parameter
DEFAULT_SORT = "-updated"


def _ranks(field: str, values) -> Case:
    whens = (When(**{field: value}, then=Value(rank)) for rank, value in enumerate(values))
    return Case(*whens, output_field=IntegerField())


# Most urgent first; statuses in the order of a ticket's life.
_SORTS = {
    "updated": F("updated_at"),
    "created": F("created_at"),
    "due": F("due_at"),
    "priority": _ranks("priority", reversed(TicketPriority.values)),
    "status": _ranks("status", TicketStatus.values),
    "subject": Lower("subject"),
    "id": F("id"),
}
_RANGES = {
    "created": "created_at",
    "updated": "updated_at",
    "due": "due_at",
    "responded": "first_responded_at",
    "resolved": "resolved_at",
}
_REPEATABLE = ("id", "status", "priority", "team", "tags")
# Commas separate their values too: a hundred ids make one short parameter.
_JOINED = ("id",)
# A field of the ticket is a filter too; one filter looks through both of the requester's.
ALIASES = {"tag": "tags", "requester_name": "requester", "requester_email": "requester"}


class TicketFilter:
    """What to show, to whom.

    Attributes:
        form: bound, for the page.
        errors: complaints by parameter; the values complained about are ignored.
        query: the parameters that reproduce this filter: lists of texts for repeatable ones, texts
            for the others. Days are read in the time zone active then, "me" as its user.
    """

    def __init__(self, params, user, choices: Choices | None = None):
        self.user = user
        data = _as_query_dict(params)
        self.form = TicketFilterForm(data, user, choices)
        self.form.full_clean()
        self.values = {name: value for name, value in self.form.cleaned_data.items() if value}
        self.errors = {name: list(texts) for name, texts in self.form.errors.items()}
        for name in set(self.errors) & set(_REPEATABLE):
            self._keep_good_values(name, data.getlist(name))
        self.sort = self.values.pop("sort", DEFAULT_SORT)
        self.query = self._canonical(data)

    def _keep_good_values(self, name, values) -> None:
        """One unknown status does not undo the choice of the others."""

        def is_good(value):
            try:
                return self.form.fields[name].clean([value])
            except forms.ValidationError:
                return False

        good = [value for value in values if is_good(value)][:MAX_IDS]
        if good:
            self.values[name] = self.form.fields[name].clean(good)

    def _canonical(self, data) -> dict[str, list[str] | str]:
        query: dict[str, list[str] | str] = {}
        for name, value in self.values.items():
            if name in _REPEATABLE:
                query[name] = list(dict.fromkeys(value))
            elif name == "overdue":
                query[name] = "1"
            elif name.endswith(("_after", "_before")):
                query[name] = data[name].strip()
            else:
                query[name] = value
        if self.sort != DEFAULT_SORT:
            query["sort"] = self.sort
        return query

    # Questions

    @property
    def is_narrowed(self) -> bool:
        """Does it leave out anything?"""
        return bool(self.values)

    def queryset(self):
        """The visible tickets it selects, sorted, with team, assignee and creator."""
        tickets = Ticket.objects.visible_to(self.user)
        if "q" in self.values:
            tickets = tickets.alias(searched_text=searched_text())
        tickets = tickets.filter(self._condition())
        if self.values.get("overdue"):
            tickets = tickets.overdue()
        return tickets.order_by(*self.order.by()).select_related("team", "assignee", "creator")

    @property
    def order(self) -> "Order":
        key = self.sort.removeprefix("-")
        return Order(_SORTS[key], self.sort.startswith("-"), nulls_last=key == "due")

    def urlencode(self, **changes) -> str:
        """The query string of this filter with ``changes``; None takes a parameter out."""
        return urlencode(pairs(self.query | changes))

    def complaints(self) -> list[str]:
        """The errors for people: each with its parameter's name in the active language."""
        fields = self.form.fields
        return [
            f"{fields[name].label}: {message}" if name in fields else message
            for name, messages in self.errors.items()
            for message in messages
        ]

    def describe(self) -> list[tuple[str, str]]:
        """What it selects, for people, in the active language and time zone."""
        return [
            (str(self.form.fields[name].label), self._told(name, value))
            for name, value in self.values.items()
        ]

    def _told(self, name, value) -> str:
        if name == "id":
            count = len(value)
            text = ngettext("%(count)d chosen ticket", "%(count)d chosen tickets", count)
            return text % {"count": count}
        if name == "tags":
            return ", ".join(value)
        if name == "overdue":
            return _("yes")
        if isinstance(value, datetime):
            return formats.date_format(timezone.localtime(value), "DATETIME_FORMAT")
        if isinstance(value, date):
            return formats.date_format(value, "DATE_FORMAT")
        choices = dict(getattr(self.form.fields[name], "choices", ()))
        if isinstance(value, list):
            return ", ".join(str(choices[each]) for each in value)
        return str(choices.get(value, value))

    def _condition(self) -> Q:
        values, condition = self.values, Q()
        for word in values.get("q", "").split()[:MAX_WORDS]:
            condition &= _matches(word)
        for name in ("id", "status", "priority", "team"):
            if name in values:
                condition &= Q(**{f"{name}__in": values[name]})
        if "assignee" in values:
            chosen = values["assignee"]
            person = {"me": self.user.pk, "none": None}.get(chosen, chosen)
            condition &= Q(assignee=person)
        if "tags" in values:
            condition &= Q(tags__contains=values["tags"])
        if "requester" in values:
            text = values["requester"]
            condition &= Q(requester_name__icontains=text) | Q(requester_email__icontains=text)
        for name, field in _RANGES.items():
            condition &= _within(field, values.get(f"{name}_after"), values.get(f"{name}_before"))
        return condition


class Order(NamedTuple):
    """By one value and then by the id, which makes it total: pages neither repeat nor skip."""

    value: Expression
    descending: bool
    nulls_last: bool  # in both directions; the other values are never null

    def by(self, backwards: bool = False) -> list[OrderBy]:
        descending = self.descending != backwards
        nulls = {}
        if self.nulls_last:
            nulls = {"nulls_first": True} if backwards else {"nulls_last": True}
        return [
            OrderBy(self.value, descending=descending, **nulls),
            OrderBy(F("id"), descending=descending),
        ]


def pairs(query: dict) -> list[tuple[str, str]]:
    """Names and values of a filter's parameters, one by one, ids together; None is no value."""
    return [
        (name, str(each))
        for name, value in query.items()
        for each in _one_by_one(name, value)
        if each is not None
    ]


def _one_by_one(name, value) -> list:
    if not isinstance(value, list | tuple):
        return [value]
    return [",".join(map(str, value))] if name in _JOINED and value else value


def _as_query_dict(params) -> QueryDict:
    """A copy with repeatable parameters under their one name and cut to a sane number."""
    data = QueryDict(mutable=True)
    items = params.lists() if isinstance(params, QueryDict) else (params or {}).items()
    for name, values in items:
        name = ALIASES.get(str(name), str(name))
        listed = values if isinstance(values, list | tuple) else [values]
        if name in _JOINED:
            # One more than allowed: enough to say so.
            texts = [text for value in listed for text in str(value).split(",")][: MAX_IDS + 1]
        else:
            texts = [str(value) for value in listed[:MAX_VALUES] if value is not None]
        for text in texts:
            data.appendlist(name, text)
    return data


def _matches(word: str) -> Q:
    condition = Q(searched_text__icontains=word)
    number = word.removeprefix("#")
    if number.isdecimal() and len(number) < 19:
        condition |= Q(pk=int(number))
    return condition


def _within(field: str, first, last) -> Q:
    condition = Q()
    if first:
        condition &= Q(**{f"{field}__gte": first if isinstance(first, datetime) else _start(first)})
    if isinstance(last, datetime):
        condition &= Q(**{f"{field}__lte": last})
    elif last:
        condition &= Q(**{f"{field}__lt": _start(last + timedelta(days=1))})
    return condition


def _start(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
