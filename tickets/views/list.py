"""The list of tickets: search, filters, quick views."""

import json
from datetime import timedelta
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.db.models.functions import Now
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from tickets.filters import DEFAULT_SORT, TicketFilter, pairs
from tickets.models import Ticket
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
    chosen = TicketFilter(request.GET, request.user)
    page = Paginator(chosen.queryset(), PER_PAGE).get_page(request.GET.get("page"))
    mark_due(page.object_list, timezone.now())
    context = {
        "chosen": chosen,
        "page": page,
        "views": _views(request.user, chosen),
        "facets": _facets(chosen),
        "active_filters": _active_filters(chosen),
        "complaints": chosen.complaints(),
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
        query = context["query"]
        if page.number > 1:
            query += f"{'&' if query else ''}page={page.number}"
        response.headers["HX-Push-Url"] = f"{request.path}?{query}" if query else request.path
        found = page.paginator.count
        said = ngettext("%(count)d ticket", "%(count)d tickets", found) % {"count": found}
        response.headers["HX-Trigger"] = json.dumps({"say": said})
    return response


def mark_due(tickets, now) -> None:
    """Gives each ticket ``due_state``: ``late``, ``today``, ``later`` or empty, for live ones."""
    today = timezone.localdate(now)
    for ticket in tickets:
        ticket.due_state = ""
        if ticket.is_live and ticket.due_at:
            is_today = timezone.localdate(ticket.due_at) == today
            ticket.due_state = "late" if ticket.due_at < now else "today" if is_today else "later"


def _views(user, chosen) -> list[dict]:
    """The quick views with their counts: one query for all of them."""
    start = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    counts = (
        Ticket.objects.visible_to(user)
        .live()
        .aggregate(
            open=Count("pk"),
            mine=Count("pk", filter=Q(assignee=user)),
            unassigned=Count("pk", filter=Q(assignee=None)),
            overdue=Count("pk", filter=Q(due_at__lt=Now())),
            today=Count("pk", filter=Q(due_at__gte=start, due_at__lt=start + timedelta(days=1))),
        )
    )
    here = {name: value for name, value in chosen.query.items() if name != "sort"}
    return [
        {
            "name": view.name,
            "label": view.label,
            "count": counts.get(view.name),
            "query": urlencode(pairs(view.query)),
            "is_here": view.query == here,
        }
        for view in quick_views(timezone.localdate())
    ]


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
