"""The one filter object of lists, links and exports: query parameters in, visible tickets out.

Whatever is wrong with a parameter is said in ``errors``, and that value is ignored; the filter
never raises and never shows what the person may not see.
"""

import functools
from datetime import date, datetime, time, timedelta

from django import forms
from django.db.models import Case, F, IntegerField, Q, Value, When
from django.db.models.functions import Lower
from django.http import QueryDict
from django.utils import formats, timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.models import Team, Ticket, TicketPriority, TicketStatus, User
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
_RANGES = ("created", "updated", "due")
_REPEATABLE = ("status", "priority", "team", "tags")
_ALIASES = {"tag": "tags"}


class LooseText(forms.CharField):
    """Text that any input becomes: what PostgreSQL cannot take could not be found either."""

    def to_python(self, value):
        text = str(value or "").replace("\0", " ")
        return super().to_python(text.encode("utf-8", "ignore").decode())


class DayOrMoment(forms.Field):
    """A day (``2026-05-01``) in the active time zone, or a moment in ISO 8601."""

    widget = forms.DateInput(attrs={"type": "date"})

    def to_python(self, value) -> date | datetime | None:
        text = str(value or "").strip()
        if not text:
            return None
        try:
            found = parse_date(text) or parse_datetime(text)
            # A plus sign that nobody escaped arrives as a blank.
            found = found or parse_datetime(text.replace(" ", "+"))
        except ValueError:
            found = None
        # Outside these years a conversion between time zones can overflow.
        if found is None or not 1970 < found.year < 3000:
            raise forms.ValidationError(
                _("“%(value)s” is not a date like 2026-05-31.") % {"value": text[:50]}
            )
        if isinstance(found, datetime) and timezone.is_naive(found):
            found = timezone.make_aware(found)
        return found


class TagsInput(forms.TextInput):
    """One line of text for a repeatable parameter."""

    def value_from_datadict(self, data, files, name):
        return data.getlist(name)

    def format_value(self, value):
        return ", ".join(value) if isinstance(value, list) else value


class YesInput(forms.CheckboxInput):
    """A link may also say no."""

    def value_from_datadict(self, data, files, name):
        return data.get(name, "").strip().lower() not in {"", "0", "false", "no", "off"}


class Tags(forms.MultipleChoiceField):
    """Any tags; commas separate them."""

    widget = TagsInput

    def to_python(self, value):
        parts = [value] if isinstance(value, str) else list(value or ())
        words = [LooseText().to_python(word) for part in parts for word in str(part).split(",")]
        return [word for word in words if word]

    def validate(self, value):
        if any(len(word) > 50 for word in value):
            raise forms.ValidationError(_("A tag has at most 50 characters."))


class TicketFilterForm(forms.Form):
    q = LooseText(label=gettext_lazy("Search"), max_length=200, required=False)
    status = forms.MultipleChoiceField(
        label=gettext_lazy("Status"), choices=TicketStatus, required=False
    )
    priority = forms.MultipleChoiceField(
        label=gettext_lazy("Priority"), choices=TicketPriority, required=False
    )
    team = forms.MultipleChoiceField(label=gettext_lazy("Team"), required=False)
    assignee = forms.ChoiceField(label=gettext_lazy("Assignee"), required=False)
    tags = Tags(label=gettext_lazy("Tags"), required=False)
    requester = LooseText(label=gettext_lazy("Requester"), max_length=200, required=False)
    created_after = DayOrMoment(label=gettext_lazy("Created from"), required=False)
    created_before = DayOrMoment(label=gettext_lazy("Created until"), required=False)
    updated_after = DayOrMoment(label=gettext_lazy("Updated from"), required=False)
    updated_before = DayOrMoment(label=gettext_lazy("Updated until"), required=False)
    due_after = DayOrMoment(label=gettext_lazy("Due from"), required=False)
    due_before = DayOrMoment(label=gettext_lazy("Due until"), required=False)
    overdue = forms.BooleanField(label=gettext_lazy("Overdue"), required=False, widget=YesInput)
    sort = forms.ChoiceField(
        label=gettext_lazy("Sort by"),
        required=False,
        choices=[(sign + key, sign + key) for key in _SORTS for sign in ("", "-")],
    )

    def __init__(self, data, user):
        super().__init__(data)
        # Functions: asked only if the page shows them or a parameter names one.
        self.fields["team"].choices = functools.cache(lambda: _teams(user))
        self.fields["assignee"].choices = functools.cache(
            lambda: _assignees(user, data.get("assignee", ""))
        )


def _teams(user) -> list[tuple[str, str]]:
    teams = Team.objects.visible_to(user).order_by("name")
    return [(str(pk), name) for pk, name in teams.values_list("pk", "name")]


def _assignees(user, chosen: str) -> list[tuple[str, str]]:
    """Me, nobody, and the members of my teams; the chosen one too if they hold a visible ticket."""
    members = Q(is_active=True, memberships__team__in=Team.objects.visible_to(user))
    if chosen.isdecimal() and len(chosen) < 19:
        holds = Ticket.objects.visible_to(user).filter(assignee=int(chosen)).exists()
        members |= Q(pk=int(chosen)) if holds else Q()
    people = User.objects.filter(members).distinct().order_by("first_name", "username")
    return [
        ("", _("anyone")),
        ("me", _("me")),
        ("none", _("nobody")),
        *((str(person.pk), person.display_name) for person in people),
    ]


class TicketFilter:
    """What to show, to whom.

    Attributes:
        form: bound, for the page.
        errors: complaints by parameter; the values complained about are ignored.
        query: the parameters that reproduce this filter: lists of texts for repeatable ones, texts
            for the others. Days are read in the time zone active then, "me" as its user.
    """

    def __init__(self, params, user):
        self.user = user
        data = _as_query_dict(params)
        self.form = TicketFilterForm(data, user)
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

        good = [value for value in values if is_good(value)]
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
        return tickets.order_by(*self._order()).select_related("team", "assignee", "creator")

    def urlencode(self, **changes) -> str:
        """The query string of this filter with ``changes``; None takes a parameter out."""
        query = QueryDict(mutable=True)
        for name, value in (self.query | changes).items():
            if value is not None:
                query.setlist(name, value if isinstance(value, list | tuple) else [str(value)])
        return query.urlencode()

    def describe(self) -> list[tuple[str, str]]:
        """What it selects, for people, in the active language and time zone."""
        return [
            (str(self.form.fields[name].label), self._told(name, value))
            for name, value in self.values.items()
        ]

    def _told(self, name, value) -> str:
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
        for name in ("status", "priority", "team"):
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
        for name in _RANGES:
            condition &= _within(
                f"{name}_at", values.get(f"{name}_after"), values.get(f"{name}_before")
            )
        return condition

    def _order(self):
        key = self.sort.removeprefix("-")
        descending = self.sort.startswith("-")
        # The id makes the order total, so pages neither repeat nor skip a ticket.
        last = "-id" if descending else "id"
        if key == "id":
            return [last]
        column = _SORTS[key]
        nulls = {"nulls_last": True} if key == "due" else {}
        return [column.desc(**nulls) if descending else column.asc(**nulls), last]


def _as_query_dict(params) -> QueryDict:
    """A copy with repeatable parameters under their one name and cut to a sane number."""
    data = QueryDict(mutable=True)
    items = params.lists() if isinstance(params, QueryDict) else (params or {}).items()
    for name, values in items:
        listed = values if isinstance(values, list | tuple) else [values]
        texts = [str(value) for value in listed[:MAX_VALUES] if value is not None]
        for text in texts:
            data.appendlist(_ALIASES.get(str(name), str(name)), text)
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
