"""Pages of the ticket list that begin where another ended, and not at a number.

A cursor is a place in the list's order: the value and id of the ticket beside it. Tickets that come
or go meanwhile neither shift a page nor are shown twice, and the last page costs what the first one
does. It is signed, so that a made-up one is told from a good one; it opens nothing, because only
visible tickets are compared with it.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from django.core import signing
from django.db.models import Q
from django.utils.translation import gettext as _

from tickets.filters import Order, TicketFilter
from tickets.models import Ticket

_SIGNER = signing.Signer(salt="tickets.paging")


@dataclass(frozen=True)
class Place:
    """Beside a ticket, and where one looks from there: forwards, or backwards.

    ``pk`` is None at the list's beginning or, backwards, at its end. ``number`` is that of the
    first ticket one sees there, from 1, as far as it is known; it is shown and decides nothing.
    """

    sort: str
    backwards: bool = False
    pk: int | None = None
    value: datetime | int | str | None = None  # what it is sorted by
    number: int | None = None

    @classmethod
    def read(cls, cursor: str, sort: str) -> "Place":
        """Raises ValueError: not a cursor of ours, or one of another order."""
        try:
            place = cls(*_SIGNER.unsign_object(cursor))
        except (signing.BadSignature, TypeError) as error:
            raise ValueError("not a cursor") from error
        if place.sort != sort:
            raise ValueError("a cursor of another order")
        if isinstance(place.value, list):
            return replace(place, value=datetime.fromisoformat(*place.value))
        return place

    def cursor(self) -> str:
        value = [self.value.isoformat()] if isinstance(self.value, datetime) else self.value
        place = [self.sort, self.backwards, self.pk, value, self.number]
        return _SIGNER.sign_object(place, compress=True)

    def ahead(self, order: Order, backwards: bool) -> Q:
        """The tickets strictly on that side of it, which have what sorts them as ``sort_value``."""
        if self.pk is None:
            return Q() if backwards == self.backwards else Q(pk__in=[])
        than = "lt" if order.descending != backwards else "gt"
        further = Q(**{f"pk__{than}": self.pk})
        if self.value is None:
            with_value = Q(sort_value__isnull=False) if backwards else Q(pk__in=[])
            return with_value | (Q(sort_value__isnull=True) & further)
        # The first half follows from the second, and is what an index can be read by.
        side = Q(**{f"sort_value__{than}e": self.value}) & (
            Q(**{f"sort_value__{than}": self.value}) | further
        )
        if order.nulls_last and not backwards:
            side |= Q(sort_value__isnull=True)
        return side

    def here(self) -> Q:
        """The ticket itself, while it is where it was."""
        if self.pk is None:
            return Q(pk__in=[])
        value = {"sort_value__isnull": True} if self.value is None else {"sort_value": self.value}
        return Q(pk=self.pk, **value)


@dataclass
class TicketPage:
    """Attributes:
    tickets: with team, assignee and creator.
    complaint: why this is not the page that was asked for; empty if it is.
    start: the number of the first ticket, from 1; None if nobody knows.
    first, previous, next, last: parameters of the other pages; None where there is none.
    here: those of this page.
    """

    tickets: list[Ticket]
    start: int | None = 1
    complaint: str = ""
    first: dict | None = None
    previous: dict | None = None
    next: dict | None = None
    last: dict | None = None
    here: dict | None = None

    def __iter__(self):
        return iter(self.tickets)

    @property
    def end(self) -> int | None:
        return None if self.start is None else self.start + len(self.tickets) - 1


def page_of(chosen: TicketFilter, params, size: int, total: int | None) -> TicketPage:
    """The page that ``cursor`` asks for, or ``page``, a number from 1, which programs and people
    may write themselves; never an error.

    Args:
        params: of the address.
        size: tickets a page.
        total: how many the filter selects; None if they were too many to count.
    """
    cursor, beginning = params.get("cursor"), Place(chosen.sort, number=1)
    if not cursor:
        number = _number(params.get("page"), size, total)
        page = _page_at(chosen, beginning, size, total, skipped=(number - 1) * size)
        page.here = {"page": number} if number > 1 else {}
        return page
    try:
        place = Place.read(cursor, chosen.sort)
    except ValueError:
        complaint = _("This place in the list is not known any more. Here is its beginning.")
    else:
        page = _page_at(chosen, place, size, total)
        page.here = {"cursor": cursor}
        if page.tickets:
            return page
        complaint = _(
            "The tickets of this page are elsewhere by now. Here is the list's beginning."
        )
    page = _page_at(chosen, beginning, size, total)
    page.here, page.complaint = {}, complaint
    return page


def _number(text: str | None, size: int, total: int | None) -> int:
    """Whoever counts pages gets the one they mean, or else the nearest that there is."""
    if not text or not (text.isascii() and text.isdecimal()):
        return 1
    pages = None if total is None else max(1, -(-total // size))
    number = max(1, int(text[:6]))
    return number if pages is None else min(number, pages)


def _page_at(
    chosen: TicketFilter, place: Place, size: int, total: int | None, skipped: int = 0
) -> TicketPage:
    order = chosen.order
    tickets = chosen.queryset().annotate(sort_value=order.value)
    ahead = tickets.filter(place.ahead(order, place.backwards))
    rows = ahead.order_by(*order.by(place.backwards))[skipped : skipped + size + 1]
    found = list(rows)
    goes_on = len(found) > size
    del found[size:]
    behind = place.here() | place.ahead(order, not place.backwards)
    comes_from = skipped > 0 or (place.pk is not None and tickets.filter(behind).exists())
    has_previous, has_next = (goes_on, comes_from) if place.backwards else (comes_from, goes_on)
    if place.backwards:
        found.reverse()
    page = TicketPage(found)
    if not found:
        return page
    number = None if place.number is None else place.number + skipped
    page.start = _start(place, number, len(found), has_previous, has_next, total)
    if has_previous:
        before = None if page.start is None else page.start - 1
        first = found[0]
        page.first = {}
        page.previous = {
            "cursor": Place(chosen.sort, True, first.pk, first.sort_value, before).cursor()
        }
    if has_next:
        after = None if page.start is None else page.end + 1
        last = found[-1]
        page.next = {"cursor": Place(chosen.sort, False, last.pk, last.sort_value, after).cursor()}
        page.last = {"cursor": Place(chosen.sort, True, number=total).cursor()}
    return page


def _start(place: Place, number, count, has_previous, has_next, total) -> int | None:
    """What the cursor says, put right where the list's ends say otherwise."""
    if not has_previous:
        return 1
    if not has_next and total is not None:
        return max(1, total - count + 1)
    if number is None:
        return None
    return max(2, number - count + 1 if place.backwards else number)
