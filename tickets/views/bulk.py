"""Changing many tickets: choose, say what, see what came of each."""

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from tickets.access import own_bulk_edit_or_404, posted_by_person
from tickets.bulk_form import BulkForm
from tickets.forms import due_presets
from tickets.listing import Listing
from tickets.models import BulkEdit, BulkOutcome, Team, Ticket
from tickets.models.bulk_edit import MAX_BULK

from .fragments import wants_fragment
from .once import new_submission, once

_SHOWN = 25  # of the tickets that would be changed; the others are counted


@login_required
def bulk_new(request):
    """GET: ``id=…`` for ticked tickets, or ``all=1`` with the list's own filters. What is shown
    then is what a POST changes: the tickets, and their versions, are in the form."""
    if not Team.objects.workable_by(request.user).exists():
        raise PermissionDenied(_("You are not an agent of any team."))
    if request.method == "POST":
        form = BulkForm(request.POST, user=request.user)
        if form.is_valid():
            try:
                return redirect("bulk_detail", once(request, lambda: _requested(request, form).pk))
            except ValidationError as error:
                form.add_error(None, error)
        seen = {} if "tickets" in form.errors else form.cleaned_data["tickets"]
        return _form_page(request, form, Ticket.objects.filter(pk__in=seen), status=422)
    chosen = Listing(request.GET, request.user).chosen
    # A filter that was not understood and left out would select more than the person meant.
    has_choice = ("all" in request.GET and not chosen.errors) or "id" in chosen.values
    tickets = chosen.queryset() if has_choice else Ticket.objects.none()
    found = list(tickets.values_list("pk", "version")[:MAX_BULK])
    seen = ",".join(f"{pk}:{version}" for pk, version in found)
    form = BulkForm(user=request.user, initial={"tickets": seen})
    more = {
        "complaints": chosen.complaints(),
        "left_out": tickets.count() - MAX_BULK if len(found) == MAX_BULK else 0,
        "missing": len(chosen.values.get("id", [])) - len(found) if "all" not in request.GET else 0,
    }
    selected = Ticket.objects.filter(pk__in=[pk for pk, _version in found])
    return _form_page(request, form, selected, **more)


def _requested(request, form) -> BulkEdit:
    chosen = form.cleaned_data
    return BulkEdit.objects.request(
        request.user, chosen["tickets"], form.changes, chosen["add_tags"], chosen["remove_tags"]
    )


def _form_page(request, form, tickets, status=200, **more):
    tickets = tickets.visible_to(request.user).order_by("-updated_at", "-id")
    total = tickets.count()
    page = {
        "form": form,
        "presets": due_presets(),
        "submission": request.POST.get("submission") or new_submission(),
        "total": total,
        "able": tickets.workable_by(request.user).count(),
        "limit": MAX_BULK,
        "tickets": tickets.select_related("team", "assignee")[:_SHOWN],
        "further": max(total - _SHOWN, 0),
        **more,
    }
    return render(request, "tickets/bulk_new.html", page, status=status)


@require_safe
@login_required
def bulk_detail(request, pk):
    bulk_edit = own_bulk_edit_or_404(request.user, pk)
    template = "tickets/_bulk_state.html" if wants_fragment(request) else "tickets/bulk_detail.html"
    return render(request, template, {"bulk_edit": bulk_edit} | _outcomes(bulk_edit, request.user))


def _outcomes(bulk_edit, user) -> dict:
    """Counts while it runs; every ticket when it has ended, those that need a look first."""
    counts = [
        {"outcome": outcome, "label": outcome.label, "count": bulk_edit.counts[outcome]}
        for outcome in BulkOutcome
        if bulk_edit.counts[outcome]
    ]
    if bulk_edit.task.is_live:
        return {"counts": counts}
    rows = list(bulk_edit.tickets.all())
    visible = Ticket.objects.visible_to(user).in_bulk([row.number for row in rows])
    for row in rows:
        row.ticket = visible.get(row.number)
    rows.sort(key=lambda row: row.outcome in {BulkOutcome.CHANGED, BulkOutcome.UNCHANGED})
    return {"counts": counts, "rows": rows, "left": bulk_edit.counts[BulkOutcome.WAITING]}


@posted_by_person
def bulk_cancel(request, pk):
    own_bulk_edit_or_404(request.user, pk).cancel(by=request.user)
    return redirect("bulk_detail", pk)


@posted_by_person
def bulk_retry(request, pk):
    own_bulk_edit_or_404(request.user, pk).retry(by=request.user)
    return redirect("bulk_detail", pk)
