"""One ticket: what is said and done on it."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from tickets.access import visible_ticket_or_404
from tickets.forms import due_presets, local_text
from tickets.models import TicketPriority, TicketStatus

from .fragments import wants_fragment
from .list import mark_due
from .once import new_submission
from .timeline import timeline_of


@require_safe
@login_required
def ticket_detail(request, pk):
    ticket = visible_ticket_or_404(request.user, pk)
    return shown(request, page_of(request, ticket) | {"keep_draft": True}, 200)


@require_safe
@login_required
def ticket_pulse(request, pk):
    """For an open page that asks now and then: has the ticket changed since it was shown?"""
    ticket = visible_ticket_or_404(request.user, pk)
    if request.GET.get("mark") == mark_of(ticket):
        return HttpResponse(status=204)
    return render(request, "tickets/_stale.html", {"ticket": ticket})


def mark_of(ticket) -> str:
    """Changes with every change and every comment."""
    return f"{ticket.updated_at.timestamp():.6f}"


def shown(request, page, status):
    template = "tickets/_ticket.html" if wants_fragment(request) else "tickets/detail.html"
    response = render(request, template, page, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def page_of(request, ticket) -> dict:
    can_work = ticket.team.is_workable_by(request.user)
    mark_due([ticket], timezone.now())
    timeline = timeline_of(ticket)
    page = {
        "ticket": ticket,
        "mark": mark_of(ticket),
        "can_work": can_work,
        "timeline": timeline,
        "seen": max((entry["comment"].pk for entry in timeline if "comment" in entry), default=0),
    }
    if not can_work:
        return page
    workers = list(ticket.team.workers())
    if ticket.assignee and ticket.assignee not in workers:
        workers.insert(0, ticket.assignee)
    return page | {
        "workers": workers,
        "i_can_take_it": request.user in workers,
        "statuses": TicketStatus.choices,
        "priorities": TicketPriority.choices,
        "presets": due_presets(),
        "due_text": local_text(ticket.due_at),
        "submission": new_submission(),
    }
