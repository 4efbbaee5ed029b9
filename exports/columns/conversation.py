"""One row a message: its ticket, and the message. Empty after the ticket where nobody wrote."""

from django.db.models import Case, F, TextField, Value, When
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from . import tickets
from .column import Column, Kind, name_of, text, time


def _visibility(reply: str, note: str) -> Case:
    return Case(
        When(comments__is_public=True, then=Value(reply)),
        When(comments__is_public=False, then=Value(note)),
        output_field=TextField(),
    )


COLUMNS = {
    **tickets.COLUMNS,
    "author": name_of(_("Author"), "comments__author", lambda zone: F("comments__author_text")),
    "visibility": Column(
        _("Visibility"),
        Kind.LABEL,
        # In the words of the ticket's page.
        lambda zone: _visibility(gettext("Reply"), gettext("Internal note")),
        lambda zone: _visibility("public", "internal"),
    ),
    "text": text(_("Text"), "comments__body"),
    **time("written_at", _("Written"), "comments__created_at"),
}
