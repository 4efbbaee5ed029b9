"""Sentences about what happened, made when shown, in the reader's language."""

from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tickets.models import NotificationKind


def of_notification(notification) -> str:
    """``Reminder: “Printer is on fire” is due``."""
    patterns = {
        NotificationKind.REMINDER: _("Reminder: “%(text)s” is due"),
        NotificationKind.ASSIGNED: _("“%(text)s” was assigned to you"),
        NotificationKind.COMMENTED: _("New comment on “%(text)s”"),
        NotificationKind.EXPORT_READY: _("Your export is ready: %(text)s"),
    }
    text = notification.text
    if notification.kind == NotificationKind.EXPORT_READY and text.isdecimal():
        rows = int(text)
        pattern = ngettext(
            "Your export is ready: %(rows)s row", "Your export is ready: %(rows)s rows", rows
        )
        return pattern % {"rows": formats.number_format(rows, force_grouping=True)}
    return patterns.get(notification.kind, "%(text)s") % {"text": text}
