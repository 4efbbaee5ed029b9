"""For real workers (``celery -I``): one that is killed at a named moment of a scheduled export."""

import os
import signal
from pathlib import Path

from exports.models import ScheduledExport
from tasks import lease

_PLACES = {
    "before the export": (ScheduledExport, "_request"),
    "between the export and the next task": (ScheduledExport, "_enqueue"),
    "before the task is completed": (lease, "record_completed"),
}
AFTER_THE_COMMIT = "after the commit"
MOMENTS = [*_PLACES, AFTER_THE_COMMIT]


def _die_once() -> None:
    """The file that ``TEST_DIE_ONCE`` names is there: then it goes, and so does this process."""
    flag = Path(os.environ["TEST_DIE_ONCE"])
    if flag.exists():
        flag.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def _kill_at(moment: str) -> None:
    if moment == AFTER_THE_COMMIT:
        complete = lease.Lease.complete

        def complete_and_die(self, effect=None):
            complete(self, effect)
            _die_once()

        lease.Lease.complete = complete_and_die
        return
    place, name = _PLACES[moment]
    original = getattr(place, name)

    def die_instead(*args, **kwargs):
        _die_once()
        return original(*args, **kwargs)

    setattr(place, name, die_instead)


if os.environ.get("TEST_DIE_AT"):
    _kill_at(os.environ["TEST_DIE_AT"])
