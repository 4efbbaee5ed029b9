"""Periodic chores: which time slot's task was inserted last. The ledger is the schedule."""

import logging
from datetime import UTC

from django.db import DatabaseError, connection, models
from django.utils.translation import gettext_lazy as _

from tasks import registry
from tasks.errors import describe
from tasks.transactions import repeating

from .background_task import BackgroundTask

logger = logging.getLogger(__name__)

# A chore waits for its last task to end, so that a weekend without workers leaves one canary a
# queue and not thousands. A slot far ahead was taken while the clock went wrong.
_IS_DUE = """
    (chore.slot_at < slot.at OR chore.slot_at > slot.at + slot.every)
    AND NOT EXISTS (
        SELECT FROM tasks_backgroundtask task
        WHERE task.id = chore.task_id AND task.status IN ('WAITING', 'RUNNING')
    )
"""
_DUE = f"""
SELECT slot.kind
FROM (
    SELECT kind, every, date_bin(every, clock_timestamp(), 'epoch'::timestamptz) AS at
    FROM unnest(%s::text[], %s::interval[]) AS wanted (kind, every)
) slot
LEFT JOIN tasks_chore chore ON chore.kind = slot.kind
WHERE chore.kind IS NULL OR ({_IS_DUE})
ORDER BY slot.kind
"""
# Judged again in the statement that takes the slot, by its own reading of the clock: a process that
# stood still since the question above takes no slot twice.
_TAKE = f"""
WITH slot AS (
    SELECT %(every)s::interval AS every,
        date_bin(%(every)s, clock_timestamp(), 'epoch'::timestamptz) AS at
)
INSERT INTO tasks_chore AS chore (kind, slot_at) SELECT %(kind)s, slot.at FROM slot
ON CONFLICT (kind) DO UPDATE SET slot_at = EXCLUDED.slot_at
WHERE (SELECT {_IS_DUE} FROM slot)
RETURNING slot_at
"""


class ChoreQuerySet(models.QuerySet):
    def insert_due(self) -> int:
        """Put a task into the ledger for each chore whose current slot has none yet. Returns how
        many; slots that passed while nobody looked are not made up for.

        Raises DatabaseError, after all chores were tried.
        """
        chores = registry.chores()
        if not chores:
            return 0
        with connection.cursor() as cursor:
            cursor.execute(_DUE, [list(chores), [kind.every for kind in chores.values()]])
            due = [name for (name,) in cursor.fetchall()]
        inserted, failure = 0, None
        for name in due:
            try:
                inserted += _take_slot(chores[name])
            except DatabaseError as error:
                logger.warning("Chore %s was not inserted: %s", name, describe(error))
                failure = error
        if failure:
            raise failure
        return inserted


@repeating
def _take_slot(kind: registry.Kind) -> bool:
    """The slot and its task, in one transaction. False: another took it first, or holds it at this
    moment: a beat that stands still in between must not stop the rounds of others."""
    chore = Chore.objects.filter(pk=kind.name)
    if not chore.select_for_update(skip_locked=True).exists() and chore.exists():
        return False
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {"kind": kind.name, "every": kind.every})
        taken = cursor.fetchone()
    if not taken:
        return False
    task = BackgroundTask.objects.enqueue(
        kind.name,
        dedup_key=f"{kind.name}:{taken[0].astimezone(UTC).isoformat()}",
        fast_path_wanted=False,
    )
    Chore.objects.filter(kind=kind.name).update(task=task)
    return True


class Chore(models.Model):
    """A kind with ``every``, from its first task on. One that no program knows any more is left
    alone: in a rolling deploy the other half may know it."""

    kind = models.CharField(_("kind"), max_length=50, primary_key=True)
    slot_at = models.DateTimeField(_("last slot"))
    # Not a constraint: the ledger forgets old tasks without asking here.
    task = models.ForeignKey(
        BackgroundTask,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
        verbose_name=_("last task"),
    )

    objects = ChoreQuerySet.as_manager()

    class Meta:
        verbose_name = _("chore")
        verbose_name_plural = _("chores")

    def __str__(self):
        return self.kind
