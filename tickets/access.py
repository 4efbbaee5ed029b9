"""The only doors to a ticket from the outside: what one may not see does not exist."""

from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from tickets.models import Ticket

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
