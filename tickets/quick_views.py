"""The quick views: filters that have a name."""

from datetime import date
from typing import NamedTuple

from django.utils.translation import gettext as _

from tickets.models.ticket_status import LIVE_STATUSES


class QuickView(NamedTuple):
    name: str
    label: str  # in the active language
    query: dict  # as TicketFilter.query


def quick_views(today: date) -> list[QuickView]:
    """In the list's order, as they are on this day."""
    live = {"status": [str(status) for status in LIVE_STATUSES]}
    day = {"due_after": today.isoformat(), "due_before": today.isoformat()}
    return [
        QuickView("open", _("Open"), live),
        QuickView("mine", _("Mine"), {"assignee": "me"} | live),
        QuickView("unassigned", _("Unassigned"), {"assignee": "none"} | live),
        QuickView("overdue", _("Overdue"), {"overdue": "1"}),
        QuickView("today", _("Due today"), day | live),
        QuickView("all", _("All"), {}),
    ]
