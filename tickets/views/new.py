"""Opening a ticket."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from tickets.forms import TicketForm, due_presets
from tickets.models import Team, Ticket

from .once import new_submission, once


@login_required
def ticket_new(request):
    if not Team.objects.workable_by(request.user).exists():
        raise PermissionDenied(_("You are not an agent of any team."))
    form = TicketForm(request.POST if request.method == "POST" else None, user=request.user)
    if request.method == "POST" and form.is_valid():
        try:
            pk = once(request, lambda: Ticket.objects.open(by=request.user, **form.changes).pk)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("Ticket #%(id)d is open.") % {"id": pk})
            return redirect("ticket_detail", pk)
    page = {
        "form": form,
        "presets": due_presets(),
        # A form that came back with errors keeps its submission: it made nothing yet.
        "submission": request.POST.get("submission") or new_submission(),
    }
    return render(request, "tickets/new.html", page, status=422 if form.errors else 200)
