"""Sentences about what happened, made when shown, in the reader's language."""

from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tickets.models import NotificationKind
from tickets.models.mail_delivery import Because


def of_notification(notification) -> str:
    """``Reminder: “Printer is on fire” is due``."""
    patterns = {
        NotificationKind.REMINDER: _("Reminder: “%(text)s” is due"),
        NotificationKind.ASSIGNED: _("“%(text)s” was assigned to you"),
        NotificationKind.COMMENTED: _("New comment on “%(text)s”"),
        NotificationKind.EXPORT_READY: _("Your export is ready: %(text)s"),
        NotificationKind.EXPORT_PAUSED: _("Your scheduled export “%(text)s” is paused"),
    }
    text = notification.text
    if notification.kind == NotificationKind.EXPORT_READY and text.isdecimal():
        rows = int(text)
        pattern = ngettext(
            "Your export is ready: %(rows)s row", "Your export is ready: %(rows)s rows", rows
        )
        return pattern % {"rows": formats.number_format(rows, force_grouping=True)}
    return patterns.get(notification.kind, "%(text)s") % {"text": text}


def why_mailed(delivery) -> str:
    """``You get this mail because …``."""
    patterns = {
        Because.ASSIGNEE: _("You get this mail because you are the assignee of this ticket."),
        Because.CREATOR: _("You get this mail because you opened this ticket."),
        Because.REQUESTER: _("You get this mail because you asked for this export."),
    }
    if delivery.kind == NotificationKind.EXPORT_PAUSED:
        return _("You get this mail because this scheduled export is yours.")
    reader = _("You get this mail because you are a member of this ticket's team.")
    return patterns.get(delivery.because, reader)
