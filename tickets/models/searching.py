"""The text a search looks through, as one expression: the index and the query must agree on it."""

from django.db.models import TextField, Value
from django.db.models.functions import Concat

_FIELDS = ("subject", "description", "requester_name", "requester_email")


def searched_text() -> Concat:
    """Subject, description and requester, on lines of their own, so that no word spans two."""
    parts: list = []
    for field in _FIELDS:
        parts += [field, Value("\n")]
    return Concat(*parts[:-1], output_field=TextField())
