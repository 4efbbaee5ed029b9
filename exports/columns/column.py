"""What a column is: its title, what its values are, and what makes its cells."""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Expression, F
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from .cells import Guarded, Joined, LocalTime, Offset, label, person


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
    Kind.TEXT: Guarded,
    Kind.TIME: LocalTime,
    Kind.LIST: lambda value: Guarded(Joined(value)),
}

# Makes an expression for rows of one kind, of a time zone's name, in the active language.
Maker = Callable[[str], Expression]


@dataclass(frozen=True)
class Column:
    """``value`` makes what the database has, for formats that know types, and ``code`` what a
    program reads where that differs: of a label, which depends on the language."""

    title: str  # translated when shown
    kind: Kind
    value: Maker
    code: Maker | None = None
    by_default: bool = True  # is in the file of whoever chooses no columns

    def header(self, zone: str) -> str:
        return f"{self.title} ({zone})" if self.kind is Kind.TIME else str(self.title)

    def cell(self, zone: str) -> Expression:
        """As it stands in a CSV file of a snapshot with that zone."""
        value = self.value(zone)
        return _CELLS[self.kind](value) if self.kind in _CELLS else value

    def for_programs(self, zone: str) -> Expression:
        return (self.code or self.value)(zone)


# The columns that several kinds of rows have, each of a field or its path.


def text(title, field: str) -> Column:
    return Column(title, Kind.TEXT, lambda zone: F(field))


def choice(title, field: str, choices) -> Column:
    return Column(title, Kind.LABEL, lambda zone: label(field, choices), lambda zone: F(field))


def name_of(title, role: str, *otherwise: Maker) -> Column:
    def name(zone: str) -> Expression:
        return person(role, *(make(zone) for make in otherwise))

    return Column(title, Kind.TEXT, name)


def time(key: str, title, field: str) -> dict[str, Column]:
    """A time as a spreadsheet understands it. Beside it, for who chooses it, by how much the clocks
    then differed from UTC: only that tells the two hours of one name apart in which summer time
    ends."""
    offset = Column(
        format_lazy(_("{title}: offset from UTC"), title=title),
        Kind.LABEL,
        lambda zone: Offset(F(field), zone),
        by_default=False,
    )
    return {key: Column(title, Kind.TIME, lambda zone: F(field)), f"{key}_offset": offset}
