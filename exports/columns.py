"""The columns of the file: their titles, and the SQL that makes each cell.

Cells are made by PostgreSQL, so that a row passes through Python as the bytes that COPY sent.
"""

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

    def __init__(self, moment: str, zone: str):
        super().__init__(F(moment), Value(zone))


class Joined(Func):
    function = "array_to_string"
    template = "%(function)s(%(expressions)s, ', ')"
    output_field = TextField()


def _label(field: str, choices) -> Expression:
    """The choice's label in the active language; a value without one as it is."""
    whens = [When(**{field: value}, then=Value(str(label))) for value, label in choices.choices]
    return Case(*whens, default=F(field), output_field=CharField())


def _person(role: str) -> Expression:
    """As ``User.display_name``: the full name, or else the user name. Empty if there is nobody."""
    full_name = Trim(Concat(f"{role}__first_name", Value(" "), f"{role}__last_name"))
    return Guarded(Coalesce(NullIf(full_name, Value("")), F(f"{role}__username")))


@dataclass(frozen=True)
class Column:
    title: str  # translated when shown
    cell: Callable[[str], Expression]  # of a time zone's name, in the active language
    is_time: bool = False

    def header(self, zone: str) -> str:
        return f"{self.title} ({zone})" if self.is_time else str(self.title)


def _text(title, field: str) -> Column:
    return Column(title, lambda zone: Guarded(F(field)))


def _time(title, field: str) -> Column:
    return Column(title, lambda zone: LocalTime(field, zone), is_time=True)


# In the file's order.
COLUMNS = {
    "id": Column(gettext_lazy("ID"), lambda zone: F("pk")),
    "team": _text(gettext_lazy("Team"), "team__name"),
    "subject": _text(gettext_lazy("Subject"), "subject"),
    "description": _text(gettext_lazy("Description"), "description"),
    "status": Column(gettext_lazy("Status"), lambda zone: _label("status", TicketStatus)),
    "priority": Column(gettext_lazy("Priority"), lambda zone: _label("priority", TicketPriority)),
    "requester_name": _text(gettext_lazy("Requester name"), "requester_name"),
    "requester_email": _text(gettext_lazy("Requester e-mail"), "requester_email"),
    "creator": Column(gettext_lazy("Creator"), lambda zone: _person("creator")),
    "assignee": Column(gettext_lazy("Assignee"), lambda zone: _person("assignee")),
    "tags": Column(gettext_lazy("Tags"), lambda zone: Guarded(Joined(F("tags")))),
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


def cells(keys: list[str], zone: str) -> list[Expression]:
    """One expression per column, with labels in the active language."""
    return [COLUMNS[key].cell(zone) for key in keys]
