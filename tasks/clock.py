"""The one clock: PostgreSQL's. Web nodes and workers may disagree about the time; rows must not."""

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func


class InUtc(Func):
    """A moment without its zone, for indexes: that much does not depend on the session's zone."""

    template = "(%(expressions)s AT TIME ZONE 'UTC')"
    output_field = DateTimeField()


def database_now() -> datetime:
    """This very moment, also inside a transaction that waited for a lock (unlike ``now()``)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]
