"""The fields of a ticket that people change: how each is cleaned and written down in history.

A new ticket field that people may change gets one line in ``EDITABLE``.
"""

import re
from datetime import UTC, datetime

from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.validators import validate_email
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from .ticket_status import TicketPriority, TicketStatus

MAX_TAGS = 20
MAX_TAG_LENGTH = 50
COMMAS = re.compile("[,，、\n]")


def clean_text(value, *, max_length: int | None = None, required: bool = False) -> str:
    """The text without surrounding blanks, with LF for every line break: browsers
    send CRLF, and a text that nobody touched must come back as it was.

    Raises ValidationError for what cannot be stored: NUL, lone surrogates, too long, blank.
    """
    text = "" if value is None else str(value)
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if "\0" in text:
        raise ValidationError(_("Null characters are not allowed."))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationError(_("The text contains characters that cannot be stored.")) from None
    if required and not text:
        raise ValidationError(_("This field is required."))
    if max_length is not None and len(text) > max_length:
        raise ValidationError(
            _("At most %(limit)d characters are allowed; these are %(length)d.")
            % {"limit": max_length, "length": len(text)}
        )
    return text


class Text:
    """Also the base of the others. ``clean`` raises ValidationError; ``to_json`` and ``to_text``
    are what history stores."""

    def __init__(self, max_length: int | None = None, required: bool = False):
        self.max_length, self.required = max_length, required

    def clean(self, value):
        return clean_text(value, max_length=self.max_length, required=self.required)

    def to_json(self, value):
        return value

    def to_text(self, value) -> str:
        return "" if value is None else str(value)


class Line(Text):
    def clean(self, value):
        # A line break in a subject would break lists and mail headers.
        return super().clean(" ".join(str(value or "").splitlines()))


class Email(Text):
    def clean(self, value):
        text = super().clean(value)
        if text:
            validate_email(text)
        return text


class Choice(Text):
    def __init__(self, choices):
        super().__init__()
        self.choices = choices

    def clean(self, value):
        if value not in self.choices.values:
            raise ValidationError(
                _("“%(value)s” is not one of the choices.") % {"value": str(value)[:50]}
            )
        return str(self.choices(value).value)

    def to_text(self, value):
        # One language in storage; the reader's language comes from the value when shown.
        with translation.override(settings.LANGUAGE_CODE):
            return str(self.choices(value).label) if value in self.choices.values else str(value)


class Tags(Text):
    def clean(self, value):
        """Commas separate tags wherever they stand, so a list of tags reads back as it was."""
        parts = [value] if isinstance(value, str) else list(value or ())
        tags: dict[str, str] = {}
        for part in parts:
            for word in COMMAS.split(str(part)):
                tag = " ".join(clean_text(word, max_length=MAX_TAG_LENGTH).split())
                if tag:
                    tags.setdefault(tag.casefold(), tag)
        if len(tags) > MAX_TAGS:
            raise ValidationError(
                _("At most %(limit)d tags are allowed; these are %(count)d.")
                % {"limit": MAX_TAGS, "count": len(tags)}
            )
        return list(tags.values())

    def to_json(self, value):
        return list(value)

    def to_text(self, value):
        return ", ".join(value)


class Moment(Text):
    def clean(self, value):
        if value is None or value == "":
            return None
        if not isinstance(value, datetime) or timezone.is_naive(value):
            raise ValidationError(_("Enter a date and time with its time zone."))
        # Outside these years a conversion between time zones can overflow.
        if not 1970 < value.year < 3000:
            raise ValidationError(_("Enter a date between the years 1971 and 2999."))
        return value.astimezone(UTC)

    def to_json(self, value):
        return value.astimezone(UTC).isoformat() if value else None

    def to_text(self, value):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if value else ""


class Person(Text):
    def clean(self, value):
        return value or None

    def to_json(self, value):
        return value.pk if value else None

    def to_text(self, value):
        return value.display_name if value else ""


class OwnerTeam(Text):
    def clean(self, value):
        if value is None:
            raise ValidationError(_("This field is required."))
        return value

    def to_json(self, value):
        return value.pk

    def to_text(self, value):
        return value.name


EDITABLE: dict[str, Text] = {
    "team": OwnerTeam(),
    "subject": Line(max_length=200, required=True),
    "description": Text(),
    "status": Choice(TicketStatus),
    "priority": Choice(TicketPriority),
    "requester_name": Line(max_length=200),
    "requester_email": Email(max_length=254),
    "assignee": Person(),
    "tags": Tags(),
    "due_at": Moment(),
}


def clean_changes(changes: dict) -> dict:
    """Cleaned values by field. Raises ValidationError with all complaints, by field."""
    cleaned, complaints = {}, {}
    for name, value in changes.items():
        if name not in EDITABLE:
            text = _("“%(field)s” cannot be changed.") % {"field": str(name)[:50]}
            complaints.setdefault(NON_FIELD_ERRORS, []).append(text)
            continue
        try:
            cleaned[name] = EDITABLE[name].clean(value)
        except ValidationError as error:
            complaints[name] = error.messages
    if complaints:
        raise ValidationError(complaints)
    return cleaned
