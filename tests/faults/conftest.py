"""What the named faults share. One file per fault; kinds that only faults need are in kinds.py."""

from datetime import timedelta

import pytest
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
