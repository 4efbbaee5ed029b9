"""What people do on one ticket: the verbs behind its buttons and small forms."""

import json

from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, ValidationError
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.access import posted_by_person, workable_ticket_or_404
from tickets.forms import MomentField, TicketForm, local_text
from tickets.models import Edit, TicketStatus, WrittenMeanwhile

from .detail import page_of, shown
from .once import once
from .texts import value_text


@posted_by_person
def ticket_verb(request, pk, verb):
    """Redirects to the ticket; htmx gets the ticket's new content instead. What could not be done
    comes back with what was typed: 422 for bad input, 409 when another was faster."""
    ticket = workable_ticket_or_404(request.user, pk)
    if verb not in VERBS:
        raise Http404
    try:
        edit = VERBS[verb](ticket, request)
    except ValidationError as error:
        return _refused(request, ticket, verb, _complaints(error))
    except WrittenMeanwhile as meanwhile:
        return _read_first(request, ticket, meanwhile.comments)
    except PermissionDenied:
        workable_ticket_or_404(request.user, pk)  # another may have moved it out of sight just now
        raise
    if edit is not None and edit.conflicts:
        return _overtaken(request, ticket, verb, edit.conflicts[0])
    if not request.htmx:
        if verb == "comment" or (edit is not None and edit.saved):
            messages.success(request, _said(verb, request))
        return redirect("ticket_detail", ticket.pk)
    page = page_of(request, ticket) | {"keep_draft": verb != "comment"}
    response = render(request, "tickets/_ticket.html", page)
    response.headers["HX-Trigger"] = json.dumps({"say": str(_said(verb, request))})
    return response


# The verbs: each returns an Edit where another may have been faster, else None.


def _set(name, value=None):
    """A verb that changes one field to what was posted, or to ``value``."""

    def verb(ticket, request):
        wanted = _posted(name, ticket, request) if value is None else value
        version = request.POST.get("version") or None
        return ticket.edit(by=request.user, changes={name: wanted}, version=version)

    return verb


def _posted(name, ticket, request):
    if name not in request.POST:
        raise ValidationError({name: [_("This field is required.")]})
    text = request.POST[name]
    if name == "due_at":
        try:
            # An untouched field shows less than is stored; see TicketForm.
            same = ticket.due_at if text == local_text(ticket.due_at) else None
            return same or MomentField(required=False).clean(text)
        except ValidationError as error:
            raise ValidationError({name: error.messages}) from error
    if name == "tags":
        return request.POST.getlist(name)
    if name != "assignee":
        return text
    if not text:
        return None
    if text == "me":
        return request.user
    pk = int(text) if text.isdecimal() and len(text) < 19 else 0
    person = ticket.team.workers().filter(pk=pk).first()
    if person is None and pk == ticket.assignee_id:
        return ticket.assignee
    if person is None:
        raise ValidationError({name: [_("This person is not an agent of the team.")]})
    return person


def _comment(ticket, request):
    said = {
        "body": request.POST.get("body", ""),
        "is_public": _is_public(request),
        "then": request.POST.get("then", ""),
    }
    seen = request.POST.get("seen", "")
    seen = int(seen) if seen.isdecimal() and len(seen) < 19 else None  # else: sent by no page

    def make():
        return ticket.comment(by=request.user, seen=seen, **said).pk

    once(request, make)
    ticket.refresh_from_db()  # another request may have made it


def _is_public(request) -> bool:
    """Only if it says so: an internal note that became public could not be taken back."""
    return request.POST.get("is_public", "").lower() in {"1", "true", "on", "yes"}


def _reopen(ticket, request):
    ticket.reopen(by=request.user)
    return Edit(saved={"status": ticket.status})


VERBS = {
    "comment": _comment,
    "assign": _set("assignee"),
    "status": _set("status"),
    "priority": _set("priority"),
    "due": _set("due_at"),
    "tags": _set("tags"),
    "resolve": _set("status", TicketStatus.RESOLVED),
    "close": _set("status", TicketStatus.CLOSED),
    "reopen": _reopen,
}

_DONE = {
    "assign": gettext_lazy("The assignee is changed."),
    "status": gettext_lazy("The status is changed."),
    "priority": gettext_lazy("The priority is changed."),
    "due": gettext_lazy("The due date is changed."),
    "tags": gettext_lazy("The tags are changed."),
    "resolve": gettext_lazy("The ticket is resolved."),
    "close": gettext_lazy("The ticket is closed."),
    "reopen": gettext_lazy("The ticket is open again."),
}


def _said(verb, request):
    if verb == "comment":
        return _("The reply is added.") if _is_public(request) else _("The internal note is added.")
    return _DONE[verb]


# What could not be done


def _complaints(error) -> list[str]:
    if not hasattr(error, "error_dict"):
        return error.messages
    labels = TicketForm.base_fields
    return [
        message
        if name in {NON_FIELD_ERRORS, "body", "version"}
        else f"{labels[name].label}: {message}"
        for name, texts in error.message_dict.items()
        for message in texts
    ]


def _refused(request, ticket, verb, complaints):
    page = page_of(request, ticket) | _typed(request, verb)
    return shown(request, page | {"complaints": complaints, "refused": verb}, 422)


def _read_first(request, ticket, comments):
    """Another wrote since this page was loaded: show it above the kept text, the person decides."""
    page = page_of(request, ticket) | _typed(request, "comment")
    return shown(request, page | {"meanwhile": comments}, 409)


def _typed(request, verb) -> dict:
    typed = {name: request.POST.get(name, "") for name in ("body", "due_at", "tags")}
    return {
        "typed": {name: text for name, text in typed.items() if name in request.POST},
        "is_note": verb == "comment" and not _is_public(request),
        "keep_draft": verb != "comment",
    }


def _overtaken(request, ticket, verb, conflict):
    """Another changed the field since this page was loaded: show both, the person decides."""
    name = conflict.field
    mine = conflict.mine
    if name == "due_at":
        posted = mine.isoformat() if mine else ""
    elif name == "assignee":
        posted = mine.pk if mine else ""
    else:
        posted = ", ".join(mine) if name == "tags" else mine
    page = page_of(request, ticket)
    page["conflict"] = {
        "label": TicketForm.base_fields[name].label,
        "mine": value_text(name, mine) or _("nothing"),
        "theirs": value_text(name, conflict.theirs) or _("nothing"),
        "verb": verb,
        "name": name,
        "posted": posted,
    }
    page["keep_draft"] = True
    return shown(request, page, 409)
