"""The only doors from the outside to a ticket, and to what a person was told: what one may not see
does not exist."""

import functools
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from tickets.models import BulkEdit, Notification, SavedView, Ticket

_RELATED = ("team", "assignee", "creator")


def visible_ticket_or_404(user, pk) -> Ticket:
    """A ticket the person may read. Raises Http404."""
    return get_object_or_404(Ticket.objects.visible_to(user).select_related(*_RELATED), pk=pk)


def workable_ticket_or_404(user, pk) -> Ticket:
    """A ticket the person may change.

    Raises Http404 if they may not even see it, PermissionDenied if they may only see it.
    """
    ticket = visible_ticket_or_404(user, pk)
    if not ticket.team.is_workable_by(user):
        raise PermissionDenied(_("You may read tickets of this team but not change them."))
    return ticket


def own_notification_or_404(user, pk) -> Notification:
    """What the person was told, unless of a ticket they may no longer see. Raises Http404."""
    return get_object_or_404(Notification.objects.of(user), pk=pk)


def visible_view_or_404(user, pk) -> SavedView:
    """A saved view of the person's or of a team of theirs. Raises Http404."""
    views = SavedView.objects.visible_to(user).select_related("team", "owner")
    return get_object_or_404(views, pk=pk)


def changeable_view_or_404(user, pk) -> SavedView:
    """Raises Http404 if they may not even see it, PermissionDenied if they may only see it."""
    view = visible_view_or_404(user, pk)
    if not view.is_changeable_by(user):
        raise PermissionDenied(_("Only its owner and the leads of its team may change it."))
    return view


def own_bulk_edit_or_404(user, pk) -> BulkEdit:
    """Only who asked for it. Raises Http404."""
    return get_object_or_404(BulkEdit.objects.filter(by=user).select_related("task"), pk=pk)


def posted_by_person(view):
    """Decorator: answers POST alone, and of people who are logged in."""

    @require_POST
    @functools.wraps(view)
    def open_door(request, *args, **kwargs):
        if not request.user.is_authenticated:
            return log_in_first(request)
        return view(request, *args, **kwargs)

    return open_door


def log_in_first(request) -> HttpResponseRedirect:
    """To the log-in page and from there back; after a form was sent, to the page it was on, because
    the form's own address may answer nothing but a form."""
    back = request.get_full_path()
    page = request.headers.get("Referer", "")
    if request.method == "POST" and url_has_allowed_host_and_scheme(page, {request.get_host()}):
        parts = urlsplit(page)
        back = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return redirect_to_login(back)
