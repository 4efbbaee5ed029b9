"""How the admin shows times and long texts."""

from django.utils.html import format_html
from django.utils.timesince import timesince
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

NOTHING = "-"  # Django's own


def to_the_second(at) -> str:
    """In the person's time zone, the same in every language: made to be compared."""
    if at is None:
        return NOTHING
    # Two spans that do not break inside: a narrow column shows the time below the date.
    at = localtime(at)
    return format_html("<span>{}</span> <span>{}</span>", f"{at:%Y-%m-%d}", f"{at:%H:%M:%S}")


def with_age(at, now) -> str:
    """Both by the database's clock."""
    if at is None:
        return NOTHING
    seconds = max(0, int((now - at).total_seconds()))
    if seconds < 120:
        age = _("%(seconds)d s ago") % {"seconds": seconds}
    else:
        age = _("%(time)s ago") % {"time": timesince(at, now)}
    return format_html("{} ({})", to_the_second(at), age)


def preformatted(text: str):
    return format_html('<pre class="ledger-text">{}</pre>', text) if text else NOTHING
