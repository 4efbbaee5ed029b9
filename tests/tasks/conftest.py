import pytest
from django.db import connection

from tests.tasks import kinds  # noqa: F401  registers them


@pytest.fixture(scope="session")
def _notes_table(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE test_notes (task bigint, run int, execution uuid)")


@pytest.fixture
def notes(_notes_table, db):
    """``notes()``: the effects there are, as (task, run); ``notes(task)``: how many of one task."""
    yield _notes
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM test_notes")


def _notes(task=None):
    with connection.cursor() as cursor:
        cursor.execute("SELECT task, run FROM test_notes ORDER BY task, run")
        rows = cursor.fetchall()
    return rows if task is None else sum(pk == task.pk for pk, _ in rows)
