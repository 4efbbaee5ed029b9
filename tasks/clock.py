"""The one clock: PostgreSQL's. Web nodes and workers may disagree about the time; rows must not."""

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """This very moment, also inside a transaction that waited for a lock (unlike ``now()``)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]
