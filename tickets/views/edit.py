"""All fields of a ticket on one form, merged with what others changed meanwhile."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from tickets.access import workable_ticket_or_404
from tickets.forms import TicketForm, due_presets, values_of

from .texts import value_text


@login_required
def ticket_edit(request, pk):
    ticket = workable_ticket_or_404(request.user, pk)
    form = TicketForm(
        request.POST if request.method == "POST" else None, user=request.user, ticket=ticket
    )
    conflicts = []
    if request.method == "POST" and form.is_valid():
        try:
            edit = ticket.edit(
                by=request.user, changes=form.changes, version=form.cleaned_data["version"]
            )
        except ValidationError as error:
            form.add_error(None, error)
        except PermissionDenied:
            workable_ticket_or_404(request.user, pk)  # another may have moved it out of sight
            raise
        else:
            conflicts = [each for each in edit.conflicts if not form.left_alone(each)]
            if not conflicts:
                if edit.saved:
                    messages.success(request, _("The ticket is saved."))
                return redirect("ticket_detail", ticket.pk)
            form = _form_that_decides(request, ticket, conflicts)
    page = {
        "ticket": ticket,
        "form": form,
        "presets": due_presets(),
        "saved_fields": [_label(name) for name in edit.saved] if conflicts else [],
        "conflicts": [_told(each, form) for each in conflicts],
    }
    status = 409 if conflicts else 422 if form.errors else 200
    return render(request, "tickets/edit.html", page, status=status)


def _form_that_decides(request, ticket, conflicts) -> TicketForm:
    """The ticket as it is now, but with my text where both changed it, and the new version: to send
    it again is to decide."""
    form = TicketForm(user=request.user, ticket=ticket)
    for each in conflicts:
        form.initial[each.field] = request.POST.get(each.field)
    return form


def _told(conflict, form) -> dict:
    return {
        "field": conflict.field,
        "fills": form[conflict.field].auto_id,
        "theirs_value": values_of(form.ticket)[conflict.field],
        "label": _label(conflict.field),
        "mine": value_text(conflict.field, conflict.mine) or _("nothing"),
        "theirs": value_text(conflict.field, conflict.theirs) or _("nothing"),
    }


def _label(name) -> str:
    return str(TicketForm.base_fields[name].label)
