"""Numbers of the operations pages. ``{% load operations %}``"""

import json

from django import template
from django.utils.formats import number_format
from django.utils.html import format_html

from tasks.operations.figures import Count

register = template.Library()


@register.simple_tag
def count(number: Count):
    """``10,000+`` beyond what is counted."""
    shown = number_format(number.shown, force_grouping=True)
    return format_html("{}{}", shown, "+" if number.is_capped else "")


@register.filter
def as_json(payload) -> str:
    return json.dumps(payload, ensure_ascii=False)
