"""The list of tickets: search, filters, quick views."""

import json
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.shortcuts import render
from django.utils import formats, timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from tickets.columns import COLUMNS
from tickets.counting import MOST_COUNTED, counts_of
from tickets.filters import DEFAULT_SORT, TicketFilter, pairs
from tickets.listing import Listing
from tickets.paging import page_of
from tickets.quick_views import quick_views

from .fragments import wants_fragment

PER_PAGE = 25


@require_safe
@login_required
def ticket_list(request):
    listing = Listing(request.GET, request.user)
    chosen = listing.chosen
    views, total = _counted_views(listing)
    page = page_of(chosen, request.GET, PER_PAGE, total if total <= MOST_COUNTED else None)
    mark_due(page.tickets, timezone.now())
    context = {
        "chosen": chosen,
        "page": page,
        "pager": _pager(listing, page),
        "listing": listing,
        "can_change_view": listing.is_changed and listing.view.is_changeable_by(request.user),
        "total": total,
        "total_in_words": _in_words(total),
        "views": views,
        "facets": _facets(chosen),
        "active_filters": _active_filters(listing),
        "complaints": chosen.complaints() + ([page.complaint] if page.complaint else []),
        "columns": _columns(listing),
        "offered_columns": [(each, each.field in listing.columns) for each in COLUMNS],
        "query": listing.urlencode(**page.here),
    }
    target = request.htmx.target if wants_fragment(request) else ""
    # The filter form asks for the results alone, so that nobody's typing is replaced under them.
    templates = {"results": "tickets/_filtered.html", "tickets": "tickets/_tickets.html"}
    response = render(request, templates.get(target, "tickets/list.html"), context)
    # Or the browser's back button would show a fragment it remembers under this address.
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    if target in templates:
        query = context["query"]
        response.headers["HX-Push-Url"] = f"{request.path}?{query}" if query else request.path
        response.headers["HX-Trigger"] = json.dumps({"say": context["total_in_words"]})
    return response


def mark_due(tickets, now) -> None:
    """Gives each ticket ``due_state``: ``late``, ``today``, ``later`` or empty, for live ones."""
    today = timezone.localdate(now)
    for ticket in tickets:
        ticket.due_state = ""
        if ticket.is_live and ticket.due_at:
            is_today = timezone.localdate(ticket.due_at) == today
            ticket.due_state = "late" if ticket.due_at < now else "today" if is_today else "later"


def _counted_views(listing) -> tuple[list[dict], int]:
    """Built-in and saved views with their counts, and that of the list itself: one query."""
    here = {name: value for name, value in listing.chosen.query.items() if name != "sort"}
    shown = [
        {
            "name": view.name,
            "label": view.label,
            "query": urlencode(pairs(view.query)),
            "is_here": listing.view is None and view.query == here,
            "filters": view.query,
        }
        for view in quick_views()
    ]
    shown += [
        {
            "name": f"saved-{view.pk}",
            "label": view.name,
            "query": urlencode({"view": view.pk}),
            "is_here": view == listing.view,
            "filters": listing.queries[view.pk],
            "team": view.team,
        }
        for view in listing.views
    ]
    person, choices = listing.person, listing.choices
    selections = {"here": listing.chosen.queryset()} | {
        view["name"]: TicketFilter(view.pop("filters"), person, choices).queryset()
        for view in shown
    }
    counts = counts_of(person, selections)
    for view in shown:
        view["count"] = counts[view["name"]]
    return shown, counts["here"]


def _in_words(total: int) -> str:
    if total > MOST_COUNTED:
        most = formats.number_format(MOST_COUNTED, force_grouping=True)
        return _("More than %(count)s tickets") % {"count": most}
    return ngettext("%(count)d ticket", "%(count)d tickets", total) % {"count": total}


def _pager(listing, page) -> dict[str, str | None]:
    """The query strings of the other pages; None where there is none."""
    query = {}
    for name in ("first", "previous", "next", "last"):
        other = getattr(page, name)
        query[name] = None if other is None else listing.urlencode(**other)
    return query


def _facets(chosen) -> list[dict]:
    """What is offered as boxes to tick."""
    facets = []
    for name in ("status", "priority", "team"):
        field, ticked = chosen.form.fields[name], chosen.query.get(name, [])
        options = [
            {"value": str(value), "label": label, "ticked": str(value) in ticked}
            for value, label in field.choices
        ]
        if len(options) > 1:
            label = field.label
            facets.append({"name": name, "label": label, "options": options, "count": len(ticked)})
    return facets


def _active_filters(listing) -> list[dict]:
    told = zip(listing.chosen.values, listing.chosen.describe(), strict=True)
    return [
        {"label": label, "text": text, "without": listing.urlencode(**{name: None})}
        for name, (label, text) in told
    ]


def _columns(listing) -> list[dict]:
    columns, sort = [], listing.chosen.sort
    for each in COLUMNS:
        if each.field not in listing.columns:
            continue
        column = {"field": each.field, "label": each.label, "key": each.sort, "direction": ""}
        if each.sort:
            is_here = sort.removeprefix("-") == each.sort
            if is_here:
                column["direction"] = "descending" if sort.startswith("-") else "ascending"
                target = each.sort if sort.startswith("-") else f"-{each.sort}"
            else:
                target = each.first + each.sort
            # The default order needs no parameter.
            column["query"] = listing.urlencode(sort=None if target == DEFAULT_SORT else target)
        columns.append(column)
    return columns
