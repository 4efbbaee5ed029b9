"""Values of a ticket's fields for people, in the reader's language and time zone."""

from tickets.models import TicketPriority, TicketStatus
from tickets.models.editable import EDITABLE
from tickets.templatetags.teamdesk import exact

_CHOICES = {"status": TicketStatus, "priority": TicketPriority}


def value_text(name: str, value) -> str:
    """``pending``, ``Bob Berg``, ``Dec. 1, 2026, 5 p.m. CET``; empty for nothing."""
    if name in _CHOICES and value in _CHOICES[name].values:
        return str(_CHOICES[name](value).label)
    if name == "due_at":
        return exact(value) if value else ""
    return EDITABLE[name].to_text(value)
