"""Which rows a file has: the selected tickets, or what is said and done on them.

Who may read a ticket reads its whole timeline (``tickets/views/timeline.py``), internal notes and
changes too, viewers as well. So the tickets' own rule decides of these rows as well.
"""

from django.db.models import F, QuerySet

from exports.models.choices import RowKind


def rows_of(tickets: QuerySet, row_kind: str) -> QuerySet:
    """The rows of that kind for these tickets, in the order of the tickets and then of the ticket's
    page. Its ``count()`` is the number of rows, its ``values_list()`` takes the columns' cells.

    A ticket without a comment has one row all the same, so that no ticket is missing from its
    conversation; one without an event has no row of history.
    """
    if row_kind == RowKind.CONVERSATION:
        rows = tickets.alias(comment=F("comments__pk"))  # joins, and keeps who has none
        return rows.order_by(*tickets.query.order_by, "comments__created_at", "comments__pk")
    if row_kind == RowKind.HISTORY:
        rows = tickets.filter(events__isnull=False)
        return rows.order_by(*tickets.query.order_by, "events__at", "events__pk")
    return tickets
