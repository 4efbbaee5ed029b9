"""One row a ticket."""

from django.db.models import F
from django.utils.translation import gettext_lazy as _

from tickets.models import TicketPriority, TicketStatus

from .column import Column, Kind, choice, name_of, text, time

# In the file's order.
COLUMNS = {
    "id": Column(_("ID"), Kind.LINK, lambda zone: F("pk")),
    "team": text(_("Team"), "team__name"),
    "subject": text(_("Subject"), "subject"),
    "description": text(_("Description"), "description"),
    "status": choice(_("Status"), "status", TicketStatus),
    "priority": choice(_("Priority"), "priority", TicketPriority),
    "requester_name": text(_("Requester name"), "requester_name"),
    "requester_email": text(_("Requester e-mail"), "requester_email"),
    "creator": name_of(_("Creator"), "creator"),
    "assignee": name_of(_("Assignee"), "assignee"),
    "tags": Column(_("Tags"), Kind.LIST, lambda zone: F("tags")),
    **time("due_at", _("Due"), "due_at"),
    **time("created_at", _("Created"), "created_at"),
    **time("updated_at", _("Updated"), "updated_at"),
    **time("first_responded_at", _("First response"), "first_responded_at"),
    **time("resolved_at", _("Resolved"), "resolved_at"),
    **time("closed_at", _("Closed"), "closed_at"),
}
