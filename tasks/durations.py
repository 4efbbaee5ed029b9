"""How long, in a few characters."""

from django.utils.translation import gettext as _


def duration(seconds: float | None) -> str:
    """``4 ms``, ``2.5 s``, ``3 min``, ``2 h``, ``5 d``; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return _("%(count)d ms") % {"count": round(seconds * 1000)}
    if seconds < 10:
        return _("%(count).1f s") % {"count": seconds}
    if seconds < 120:
        return _("%(count)d s") % {"count": round(seconds)}
    if seconds < 7_200:
        return _("%(count)d min") % {"count": round(seconds / 60)}
    if seconds < 172_800:
        return _("%(count)d h") % {"count": round(seconds / 3_600)}
    return _("%(count)d d") % {"count": round(seconds / 86_400)}
