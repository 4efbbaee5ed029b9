"""What the named faults share. One file per fault; kinds that only faults need are in kinds.py."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from tasks.models import BackgroundTask
from tests.admin.conftest import make_staff, operator, run_action, told  # noqa: F401  fixtures
from tests.faults import kinds  # noqa: F401  registers them
from tests.faults.proxy import postgres_proxy, redis_proxy  # noqa: F401  fixtures
from tests.tasks.conftest import _notes_table, notes, round_under_way  # noqa: F401  fixtures


@pytest.fixture
def reread():
    """``reread(task)``: the row as it is now."""
    return lambda task: BackgroundTask.objects.get(pk=task.pk)


@pytest.fixture
def time_passes():
    """``time_passes(seconds)``: moves every time in the ledger back by as much, as if it passed.

    Only the ledger's: what Redis keeps stays as young as it is.
    """

    def move(seconds: float):
        by = timedelta(seconds=seconds)
        BackgroundTask.objects.update(
            run_at=F("run_at") - by,
            updated_at=F("updated_at") - by,
            dispatched_at=F("dispatched_at") - by,
        )

    return move


@pytest.fixture
def make_due():
    """``make_due()``: whatever waits on its ladder need wait no longer."""

    def make():
        BackgroundTask.objects.waiting().filter(run_at__gt=Now()).update(
            run_at=Now(), dispatched_at=None
        )

    return make


class Held:
    """Tasks whose handlers work until they are let go, also in the processes of real workers."""

    def __init__(self, folder):
        self.folder = folder

    def enqueue(self, kind: str = "HELD", **payload) -> BackgroundTask:
        payload["folder"] = str(self.folder)
        return BackgroundTask.objects.enqueue(kind, payload=payload)

    def let_go(self, task, run: int = 0, attempt: int = 1) -> None:
        (self.folder / f"go-{task.pk}-{run}-{attempt}").touch()

    def starts(self, task) -> list[tuple[int, int]]:
        """(run, attempt) of each time that its handler was called."""
        return [(run, attempt) for pk, run, attempt, _ in self._lines() if pk == task.pk]

    def process_of(self, task) -> int:
        """The process that started it last."""
        return [process for pk, _, _, process in self._lines() if pk == task.pk][-1]

    def _lines(self):
        file = self.folder / "starts"
        lines = file.read_text().splitlines() if file.exists() else []
        return [tuple(map(int, line.split())) for line in lines]


@pytest.fixture
def held(tmp_path):
    return Held(tmp_path)


@pytest.fixture
def lease_runs_out(time_passes):
    """Whoever gives no sign of life from here on has lost its lease."""
    return lambda: time_passes(settings.TEAMDESK_LEASE_SECONDS + 1)


@pytest.fixture
def no_pauses(monkeypatch):
    """Nobody waits for a PostgreSQL that is there."""
    monkeypatch.setattr("tasks.transactions.sleep", lambda seconds: None)


@pytest.fixture
def terminate(wait_until, transactional_db):
    """``terminate(pid)``: PostgreSQL ends that session, seen from a connection of its own."""

    def end(pid):
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

                def is_gone():
                    cursor.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
                    return cursor.fetchone() is None

                wait_until(is_gone, "the session has ended")
        finally:
            other.close()

    return end
