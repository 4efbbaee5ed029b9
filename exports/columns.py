"""The columns of the file: their titles, what their values are, and the SQL that makes each cell.

Cells are made by PostgreSQL, so that a row passes through Python as the bytes that COPY sent.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db.models import Case, CharField, Expression, F, Func, TextField, Value, When
from django.db.models.functions import Coalesce, Concat, NullIf, Trim
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.models import TicketPriority, TicketStatus

# A cell that starts with one of these may be run as a formula by a spreadsheet: the four signs,
# their full-width forms, and the controls that spreadsheets drop before they look (OWASP, "CSV
# Injection"). Some drop leading blanks too, also those without a width: the check looks past them.
FORMULA_STARTS = "=+-@＝＋－＠\t\r\n"
BLANKS = " \u00a0\u200b\u2060\u3000\ufeff"


class Guarded(Func):
    """Text that no spreadsheet takes for a formula: an apostrophe is put before a dangerous start.

    ``ascii()`` is the code point of the first character. Comparing integers costs next to nothing
    where a regular expression converts all of a text; nearly every cell ends at the first WHEN.
    """

    arity = 1
    output_field = TextField()
    _codes = ", ".join(str(ord(character)) for character in FORMULA_STARTS)
    _blanks = ", ".join(str(ord(character)) for character in BLANKS)

    def as_sql(self, compiler, connection, **context):
        text, parameters = compiler.compile(self.source_expressions[0])
        sql = (
            f"CASE WHEN ascii({text}) NOT IN ({self._codes}, {self._blanks}) THEN {text}"
            f" WHEN ascii(ltrim({text}, '{BLANKS}')) IN ({self._codes})"
            f" THEN '''' || {text} ELSE {text} END"
        )
        return sql, [*parameters] * 5


class LocalTime(Func):
    """``2026-03-29 03:00:00``: a moment as the clocks of ``zone`` show it, by that day's rules.

    COPY writes it so under the date style that a snapshot sets; to_char() would take twice as long.
    """

    template = "date_trunc('second', %(expressions)s)"
    arg_joiner = " AT TIME ZONE "
    output_field = CharField()

    def __init__(self, moment: Expression, zone: str):
        super().__init__(moment, Value(zone))


class Joined(Func):
    function = "array_to_string"
    template = "%(function)s(%(expressions)s, ', ')"
    output_field = TextField()


class Kind(enum.Enum):
    """What the values of a column are; each format writes each kind in its own way."""

    TEXT = "text"  # what people wrote: in CSV guarded against formulas
    LABEL = "label"  # our own words, in the requester's language
    NUMBER = "number"
    LINK = "link"  # the number of a ticket, which leads to it where cells can be links
    TIME = "time"
    LIST = "list"  # of what people wrote


# What a CSV file has of each kind. Numbers stay as they are: guarded, -5 would be text.
_CELLS = {
    Kind.TEXT: lambda value, zone: Guarded(value),
    Kind.TIME: LocalTime,
    Kind.LIST: lambda value, zone: Guarded(Joined(value)),
}


@dataclass(frozen=True)
class Column:
    """``value`` makes what the database has, for formats that know types, and ``code`` what a
    program reads where that differs: of a label, which depends on the language."""

    title: str  # translated when shown
    kind: Kind
    value: Callable[[], Expression]  # called in the active language
    code: Callable[[], Expression] | None = None

    def header(self, zone: str) -> str:
        return f"{self.title} ({zone})" if self.kind is Kind.TIME else str(self.title)

    def cell(self, zone: str) -> Expression:
        """As it stands in a CSV file, with the times of ``zone``."""
        value = self.value()
        return _CELLS[self.kind](value, zone) if self.kind in _CELLS else value

    def for_programs(self) -> Expression:
        return (self.code or self.value)()


def _text(title, field: str) -> Column:
    return Column(title, Kind.TEXT, lambda: F(field))


def _time(title, field: str) -> Column:
    return Column(title, Kind.TIME, lambda: F(field))


def _choice(title, field: str, choices) -> Column:
    """The choice's label; a value without one as it is."""

    def label() -> Expression:
        whens = [When(**{field: value}, then=Value(str(each))) for value, each in choices.choices]
        return Case(*whens, default=F(field), output_field=CharField())

    return Column(title, Kind.LABEL, label, code=lambda: F(field))


def _person(title, role: str) -> Column:
    """As ``User.display_name``: full name, or else user name. Nothing if there is nobody."""

    def name() -> Expression:
        full_name = Trim(Concat(f"{role}__first_name", Value(" "), f"{role}__last_name"))
        return Coalesce(NullIf(full_name, Value("")), F(f"{role}__username"))

    return Column(title, Kind.TEXT, name)


# In the file's order.
COLUMNS = {
    "id": Column(gettext_lazy("ID"), Kind.LINK, lambda: F("pk")),
    "team": _text(gettext_lazy("Team"), "team__name"),
    "subject": _text(gettext_lazy("Subject"), "subject"),
    "description": _text(gettext_lazy("Description"), "description"),
    "status": _choice(gettext_lazy("Status"), "status", TicketStatus),
    "priority": _choice(gettext_lazy("Priority"), "priority", TicketPriority),
    "requester_name": _text(gettext_lazy("Requester name"), "requester_name"),
    "requester_email": _text(gettext_lazy("Requester e-mail"), "requester_email"),
    "creator": _person(gettext_lazy("Creator"), "creator"),
    "assignee": _person(gettext_lazy("Assignee"), "assignee"),
    "tags": Column(gettext_lazy("Tags"), Kind.LIST, lambda: F("tags")),
    "due_at": _time(gettext_lazy("Due"), "due_at"),
    "created_at": _time(gettext_lazy("Created"), "created_at"),
    "updated_at": _time(gettext_lazy("Updated"), "updated_at"),
    "first_responded_at": _time(gettext_lazy("First response"), "first_responded_at"),
    "resolved_at": _time(gettext_lazy("Resolved"), "resolved_at"),
    "closed_at": _time(gettext_lazy("Closed"), "closed_at"),
}


def chosen(keys: list[str] | None) -> list[str]:
    """These columns' keys in the file's order, each once; None means all.

    Raises:
        ValidationError: an unknown key, or none at all.
    """
    if keys is None:
        return list(COLUMNS)
    unknown = sorted(set(keys) - set(COLUMNS))
    if unknown:
        raise ValidationError(
            _("There is no column “%(name)s”. Columns are: %(known)s.")
            % {"name": unknown[0][:100], "known": ", ".join(COLUMNS)}
        )
    if not keys:
        raise ValidationError(_("Choose at least one column."))
    return [key for key in COLUMNS if key in keys]


def header(keys: list[str], zone: str) -> list[str]:
    """The first row, in the active language."""
    return [COLUMNS[key].header(zone) for key in keys]


def selected(keys: list[str]) -> dict[str, Column]:
    """The columns of these keys, in their order."""
    return {key: COLUMNS[key] for key in keys}


def cells(keys: list[str], zone: str) -> list[Expression]:
    """One expression per column of a CSV file, with labels in the active language."""
    return [COLUMNS[key].cell(zone) for key in keys]
