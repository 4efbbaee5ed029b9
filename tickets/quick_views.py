"""The quick views: filters that have a name."""

from datetime import date, timedelta
from typing import NamedTuple

from django.utils.translation import gettext as _

from tickets.models.ticket_status import LIVE_STATUSES, TicketStatus

RECENT_DAYS = 7  # with today


class QuickView(NamedTuple):
    name: str
    label: str  # in the active language
    query: dict  # as TicketFilter.query


def quick_views(day: date | None = None) -> list[QuickView]:
    """In the list's order. Their days are counted from today, whenever that is, so a link that was
    kept is still right tomorrow; or they are those of ``day``, as dates."""
    today = day.isoformat() if day else "today"
    a_while_ago = f"today-{RECENT_DAYS - 1}"
    if day:
        a_while_ago = (day - timedelta(days=RECENT_DAYS - 1)).isoformat()
    live = {"status": [str(status) for status in LIVE_STATUSES]}
    return [
        QuickView("open", _("Open"), live),
        QuickView("mine", _("Mine"), {"assignee": "me"} | live),
        QuickView("unassigned", _("Unassigned"), {"assignee": "none"} | live),
        QuickView("overdue", _("Overdue"), {"overdue": "1"}),
        QuickView("today", _("Due today"), {"due_after": today, "due_before": today} | live),
        QuickView("waiting", _("Waiting on customer"), {"status": [str(TicketStatus.PENDING)]}),
        QuickView("resolved", _("Recently resolved"), {"resolved_after": a_while_ago}),
        QuickView("all", _("All"), {}),
    ]
