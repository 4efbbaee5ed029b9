"""The kinds that the model plays with. What a handler does is decided by the machine, run by run.

They stand in for the registry only while the machine runs, so no other test meets them.
"""

import uuid
from datetime import timedelta

from django.db import connection

from exports.models import Export
from tasks.registry import LONG, Kind

RESULT_SECONDS = 50_000


class Stage:
    """``play(task, lease)`` is what handlers do: the machine sets it before it has a job run."""

    play = None


def _handler(task, lease):
    return Stage.play(task, lease)


NOTE = Kind("NOTE", _handler, ladder=(6_000, 30_000))
MANY = Kind("MANY", _handler, ladder=(6_000,), batch=3)
ONCE = Kind("ONCE", _handler, ladder=())
RESULT = Kind(
    "RESULT",
    _handler,
    queue=LONG,
    ladder=(6_000,),
    result_ttl=lambda: timedelta(seconds=RESULT_SECONDS),
)

KINDS = {kind.name: kind for kind in (NOTE, MANY, ONCE, RESULT)}


def write_effect(pk: int, run: int, execution: uuid.UUID) -> None:
    """The database effect of an execution. That of a result also says whose chunks it is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO model_effects (task, run, execution) VALUES (%s, %s, %s)",
            [pk, run, execution],
        )
    Export.objects.filter(pk=pk).update(execution_id=execution)
