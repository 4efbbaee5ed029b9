"""Values of a ticket's fields for people, in the reader's language and time zone."""

from tickets.models.editable import EDITABLE, Choice, Moment
from tickets.templatetags.teamdesk import exact


def value_text(name: str, value) -> str:
    """``pending``, ``Bob Berg``, ``Dec. 1, 2026, 5 p.m. CET``; empty for nothing."""
    kind = EDITABLE[name]
    if isinstance(kind, Choice) and value in kind.choices.values:
        return str(kind.choices(value).label)
    if isinstance(kind, Moment):
        return exact(value) if value else ""
    return kind.to_text(value)
