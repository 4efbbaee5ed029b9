"""How the admin shows times and long texts."""

from django.utils.html import format_html
from django.utils.timesince import timesince
from django.utils.timezone import localtime
from django.utils.translation import gettext as _


def to_the_second(at) -> str | None:
    return f"{localtime(at):%Y-%m-%d %H:%M:%S}" if at else None


def with_age(at, now) -> str | None:
    """Both by the database's clock."""
    if at is None:
        return None
    seconds = max(0, int((now - at).total_seconds()))
    if seconds < 120:
        age = _("%(seconds)d s ago") % {"seconds": seconds}
    else:
        age = _("%(time)s ago") % {"time": timesince(at, now)}
    return f"{to_the_second(at)} ({age})"


def preformatted(text: str):
    return format_html('<pre class="ledger-text">{}</pre>', text) if text else None
