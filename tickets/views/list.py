"""The list of tickets: search, filters, quick views."""

import json
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.shortcuts import render
from django.utils import formats, timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from tickets.counting import MOST_COUNTED, counts_of
from tickets.filter_form import Choices
from tickets.filters import DEFAULT_SORT, TicketFilter, pairs
from tickets.paging import page_of
from tickets.quick_views import quick_views

from .fragments import wants_fragment

PER_PAGE = 25
# Column: the ticket's field, its sort key, its name, and the direction a first click sorts in.
COLUMNS = [
    ("id", "id", gettext_lazy("ID"), "-"),
    ("subject", "subject", gettext_lazy("Subject"), ""),
    ("status", "status", gettext_lazy("Status"), ""),
    ("priority", "priority", gettext_lazy("Priority"), ""),
    ("assignee", None, gettext_lazy("Assignee"), ""),
    ("team", None, gettext_lazy("Team"), ""),
    ("due_at", "due", gettext_lazy("Due"), ""),
    ("updated_at", "updated", gettext_lazy("Updated"), "-"),
]
VISIBLE_FIELDS = [field for field, *_rest in COLUMNS]  # what an export of the list begins with


@require_safe
@login_required
def ticket_list(request):
    choices = Choices(request.user, [request.GET.get("assignee", "")])
    chosen = TicketFilter(request.GET, request.user, choices)
    views, total = _counted_views(chosen, choices)
    page = page_of(chosen, request.GET, PER_PAGE, total if total <= MOST_COUNTED else None)
    mark_due(page.tickets, timezone.now())
    context = {
        "chosen": chosen,
        "page": page,
        "pager": _pager(chosen, page),
        "total": total,
        "total_in_words": _in_words(total),
        "views": views,
        "facets": _facets(chosen),
        "active_filters": _active_filters(chosen),
        "complaints": chosen.complaints() + ([page.complaint] if page.complaint else []),
        "columns": _columns(chosen),
        "query": chosen.urlencode(),
    }
    target = request.htmx.target if wants_fragment(request) else ""
    # The filter form asks for the results alone, so that nobody's typing is replaced under them.
    templates = {"results": "tickets/_filtered.html", "tickets": "tickets/_tickets.html"}
    response = render(request, templates.get(target, "tickets/list.html"), context)
    # Or the browser's back button would show a fragment it remembers under this address.
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    if target in templates:
        query = chosen.urlencode(**page.here)
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


def _counted_views(chosen, choices) -> tuple[list[dict], int]:
    """The quick views with their counts, and that of the list itself: one query for all of them."""
    person = chosen.user
    views = quick_views()
    selections = {view.name: TicketFilter(view.query, person, choices) for view in views}
    querysets = {name: filters.queryset() for name, filters in selections.items()}
    counts = counts_of(person, {"here": chosen.queryset()} | querysets)
    here = {name: value for name, value in chosen.query.items() if name != "sort"}
    shown = [
        {
            "name": view.name,
            "label": view.label,
            "count": counts[view.name],
            "query": urlencode(pairs(view.query)),
            "is_here": view.query == here,
        }
        for view in views
    ]
    return shown, counts["here"]


def _in_words(total: int) -> str:
    if total > MOST_COUNTED:
        most = formats.number_format(MOST_COUNTED, force_grouping=True)
        return _("More than %(count)s tickets") % {"count": most}
    return ngettext("%(count)d ticket", "%(count)d tickets", total) % {"count": total}


def _pager(chosen, page) -> dict[str, str | None]:
    """The query strings of the other pages; None where there is none."""
    others = {name: getattr(page, name) for name in ("first", "previous", "next", "last")}
    return {
        name: None if other is None else chosen.urlencode(**other) for name, other in others.items()
    }


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


def _active_filters(chosen) -> list[dict]:
    told = zip(chosen.values, chosen.describe(), strict=True)
    return [
        {"label": label, "text": text, "without": chosen.urlencode(**{name: None})}
        for name, (label, text) in told
    ]


def _columns(chosen) -> list[dict]:
    columns = []
    for _field, key, label, first in COLUMNS:
        column = {"label": label, "key": key, "direction": ""}
        if key:
            is_here = chosen.sort.removeprefix("-") == key
            if is_here:
                column["direction"] = "descending" if chosen.sort.startswith("-") else "ascending"
                target = key if chosen.sort.startswith("-") else f"-{key}"
            else:
                target = first + key
            # The default order needs no parameter.
            column["query"] = chosen.urlencode(sort=None if target == DEFAULT_SORT else target)
        columns.append(column)
    return columns
