"""Small pieces of markup that every page of the project uses. ``{% load teamdesk %}``"""

from django import template
from django.template.loader_tags import BLOCK_CONTEXT_KEY
from django.templatetags.static import static
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tasks.durations import duration as duration_of
from tickets.counting import MOST_COUNTED

register = template.Library()

# The colour of a status, a priority or a task's state. An unknown value is neutral.
TONES = {
    "open": "blue",
    "pending": "amber",
    "on_hold": "violet",
    "resolved": "green",
    "closed": "neutral",
    "low": "neutral",
    "normal": "neutral",
    "high": "orange",
    "urgent": "red",
    "WAITING": "neutral",
    "RUNNING": "blue",
    "COMPLETED": "green",
    "FAILED": "red",
    "CANCELLED": "neutral",
    "completed": "green",
    "failed": "red",
    "lease_expired": "orange",
    "released": "neutral",
    "cancelled": "neutral",
}

PRIORITY_ICONS = {"low": "arrow-down", "normal": "minus", "high": "arrow-up", "urgent": "flame"}

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


@register.simple_tag
def icon(name, classes=""):
    """``{% icon "bell" %}``: one of static/icons.svg, as decoration beside a name."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        classes,
        static("icons.svg"),
        name,
    )


@register.simple_tag
def status_chip(value, label):
    """``{% status_chip ticket.status ticket.get_status_display %}``: also for states of tasks."""
    return format_html(
        '<span class="chip chip-{}"><span class="chip-dot" aria-hidden="true"></span>{}</span>',
        TONES.get(value, "neutral"),
        capfirst(label),
    )


@register.simple_tag
def priority_chip(value, label):
    """``{% priority_chip ticket.priority ticket.get_priority_display %}``"""
    return format_html(
        '<span class="priority priority-{}">{}{}</span>',
        TONES.get(value, "neutral"),
        icon(PRIORITY_ICONS.get(value, "minus")),
        capfirst(label),
    )


@register.simple_tag
def timestamp(at, style="relative", classes=""):
    """``{% timestamp ticket.due_at %}``: a <time> in the reader's zone; nothing for None.

    The text is relative ("5 min ago") and the title absolute, or with ``"absolute"`` the reverse.
    """
    if at is None:
        return ""
    text, title = relative(at), exact(at)
    if style == "absolute":
        text, title = formats.date_format(timezone.localtime(at), "DATETIME_FORMAT"), text
    return format_html(
        '<time datetime="{}" title="{}" class="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        title,
        classes,
        text,
    )


def exact(at):
    """Date, time and zone, as the reader's language writes them."""
    local = timezone.localtime(at)
    return f"{formats.date_format(local, 'DATETIME_FORMAT')} {local.tzname()}"


def relative(at):
    """``5 min ago``, ``in 2 h``; the date beyond a week."""
    seconds = (at - timezone.now()).total_seconds()
    distance = abs(seconds)
    if distance < _MINUTE:
        return _("just now") if seconds <= 0 else _("in less than a minute")
    if distance < _HOUR:
        count = round(distance / _MINUTE)
        past = ngettext("%(count)d min ago", "%(count)d min ago", count)
        future = ngettext("in %(count)d min", "in %(count)d min", count)
    elif distance < _DAY:
        count = round(distance / _HOUR)
        past = ngettext("%(count)d h ago", "%(count)d h ago", count)
        future = ngettext("in %(count)d h", "in %(count)d h", count)
    elif distance < 7 * _DAY:
        count = round(distance / _DAY)
        past = ngettext("%(count)d day ago", "%(count)d days ago", count)
        future = ngettext("in %(count)d day", "in %(count)d days", count)
    else:
        local = timezone.localtime(at)
        this_year = local.year == timezone.localtime().year
        return formats.date_format(local, "MONTH_DAY_FORMAT" if this_year else "DATE_FORMAT")
    return (past if seconds < 0 else future) % {"count": count}


@register.filter
def initials(person):
    """``AB`` for Alice Berg, ``AL`` for alice: what an avatar shows."""
    words = str(getattr(person, "display_name", person)).split()
    if len(words) > 1:
        return (words[0][:1] + words[-1][:1]).upper()
    return "".join(words)[:2].upper()


@register.filter
def hue(person):
    """One of eight avatar colours, always the same one for a person."""
    return (getattr(person, "pk", None) or 0) % 8


@register.simple_tag(takes_context=True)
def again(context, name):
    """``{% again "title" %}``: that block once more; Django renders it in one place only."""
    return context.render_context[BLOCK_CONTEXT_KEY].get_block(name).render(context)


@register.filter
def grouped(number):
    """``12,840``: a count as the reader's language writes it."""
    return formats.number_format(number, force_grouping=True)


@register.filter
def counted(number):
    """A count of tickets; ``10,000+`` where counting stopped."""
    return f"{grouped(MOST_COUNTED)}+" if number > MOST_COUNTED else grouped(number)


@register.filter
def elided(page):
    """The page numbers to show, with … for gaps."""
    return page.paginator.get_elided_page_range(page.number, on_each_side=1, on_ends=1)


@register.filter
def duration(seconds) -> str:
    """``{{ figures.median|duration }}``: “3 min”; a dash for None."""
    return duration_of(seconds)
