"""Every time zone that a person may choose is one that PostgreSQL knows too: it writes exports."""

from django.db import connection

from tickets.models.user import time_zones


def test_postgresql_knows_every_zone_on_offer(db):
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_timezone_names")
        known = {name for (name,) in cursor.fetchall()}
    assert time_zones() - known == set()
