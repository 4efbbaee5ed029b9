"""Many counts of tickets in one query."""

from django.db.models import IntegerField, QuerySet, Subquery

from tickets.models import User

MOST_COUNTED = 10_000


class _Count(Subquery):
    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def counts_of(person: User, selections: dict[str, QuerySet]) -> dict[str, int]:
    """How many tickets each selects. ``MOST_COUNTED + 1`` means "more than ``MOST_COUNTED``": to
    count a million would take a hundred times as long and tell a person nothing else."""
    counts = {
        name: _Count(tickets.order_by().select_related(None).values("pk")[: MOST_COUNTED + 1])
        for name, tickets in selections.items()
    }
    return User.objects.filter(pk=person.pk).values(**counts).get()
