import threading

import pytest
from django.db import connection
from prometheus_client import CollectorRegistry

from tasks import metrics, queue
from tasks.dispatcher import dispatch_once
from tests.tasks import kinds  # noqa: F401  registers them


@pytest.fixture(scope="session")
def _notes_table(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(  # another folder that borrows this fixture may have been first
            "CREATE TABLE IF NOT EXISTS test_notes (task bigint, run int, execution uuid)"
        )


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


@pytest.fixture
def round_under_way(actor, monkeypatch):
    """A round that another process has begun and that stands still. It needs a waiting task.

    Call what ``round_under_way()`` returns to let it go on: that gives its report.
    """

    def begin():
        inside, go_on = threading.Event(), threading.Event()
        original = queue.view_of

        def standing_still(*args, **kwargs):
            monkeypatch.setattr(queue, "view_of", original)
            inside.set()
            assert go_on.wait(30)
            return original(*args, **kwargs)

        monkeypatch.setattr(queue, "view_of", standing_still)
        report = actor("the other process").start(dispatch_once)
        assert inside.wait(30)

        def finish():
            go_on.set()
            return report.result(30)

        return finish

    return begin


@pytest.fixture
def counted():
    """``counted()``: what was counted since the test began, without the zeros."""
    collected = CollectorRegistry()
    for metric in metrics.ALL:
        collected.register(metric)

    def now():
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in collected.collect()
            for sample in family.samples
            if not sample.name.endswith(("_bucket", "_created"))
        }

    before = now()

    def since():
        more = {key: value - before.get(key, 0) for key, value in now().items()}
        return {key: value for key, value in more.items() if value}

    return since
