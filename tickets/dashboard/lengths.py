"""How long tickets took, from their opening: medians, and what nine of ten took at most."""

from dataclasses import dataclass

from django.contrib.postgres.fields import ArrayField
from django.db.models import Aggregate, Count, F, FloatField, QuerySet
from django.db.models.functions import Extract, Greatest


class Percentiles(Aggregate):
    """The median and the 90th percentile, by ``percentile_cont``; None of nothing."""

    function = "percentile_cont"
    template = "%(function)s(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = ArrayField(FloatField())


# Seconds from a ticket's opening to each of these; none if an imported one was answered before.
LENGTH = {
    field: Greatest(Extract(F(field) - F("created_at"), "epoch"), 0.0)
    for field in ("first_responded_at", "resolved_at")
}


@dataclass(frozen=True)
class Lengths:
    """In seconds; None of no tickets."""

    count: int
    median: float | None
    most: float | None  # what nine of ten took at most


def lengths(tickets: QuerySet, field: str) -> Lengths:
    """``field``: of ``LENGTH``; it is set in all of ``tickets``."""
    found = tickets.aggregate(count=Count("pk"), lengths=Percentiles(LENGTH[field]))
    median, most = found["lengths"] or (None, None)
    return Lengths(found["count"], median, most)
