"""The work of every job of every arm: one INSERT, through Django's connection."""

from django.db import connection

_INSERT = """
INSERT INTO bench_effects (job, published_at, picked_up_at, called_at) VALUES (%s, %s, %s, %s)
"""


def write_effect(job: int, published_at=None, picked_up_at=None, called_at=None) -> None:
    """The moments, in seconds since 1970, are known in our own arm: they show where time goes."""
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [job, published_at, picked_up_at, called_at])
