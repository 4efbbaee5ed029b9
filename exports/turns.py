"""Whose turn it is: nobody waits behind another person's many exports.

The long queue is first in, first out. An export whose person is served already steps aside here for
those who are not, and comes back a little later. docs/decisions/0013 says why so and not otherwise.
"""

from datetime import timedelta

from django.db import connection
from django.utils.translation import gettext as _

from exports.models import Export
from tasks.clock import database_now
from tasks.models import AttemptOutcome, TaskAttempt
from tasks.registry import RetryLater
from tasks.transactions import repeating

MOST_STEPS = 20  # aside in one run, far fewer than the retries that are free: then it goes first
SHORTEST, LONGEST, GROWTH = 2.0, 30.0, 1.5  # seconds aside: the first time, at most, and by which
_LOCK = 7_304_116  # of PostgreSQL's advisory locks

# Everybody with an export under way, in the order of service: who has fewer running comes first,
# then who waits longer since they asked or were served last. A person goes before another only in
# that order, so those who step aside never do so in a circle. `running` counts those whose turn has
# come: one that is just being judged by another worker is not served yet.
_OTHERS_COME_FIRST = """
WITH person AS (
    SELECT task.owner_id AS id,
        count(*) FILTER (
            WHERE task.id <> %(export)s AND task.status = 'RUNNING'
                AND task.execution_id = export.turn_of
        ) AS running,
        min(task.run_at) FILTER (
            WHERE task.status = 'WAITING' AND task.run_at <= statement_timestamp()
        ) AS waiting_since
    FROM tasks_backgroundtask task JOIN exports_export export ON export.task_id = task.id
    WHERE task.kind = 'EXPORT' AND task.status IN ('WAITING', 'RUNNING')
    GROUP BY task.owner_id
), served AS (
    SELECT person.*, (
        SELECT max(began_at) FROM exports_export WHERE requester_id = person.id
    ) AS served_at
    FROM person
)
SELECT EXISTS (
    SELECT FROM served mine, served other
    WHERE mine.id = %(person)s AND other.id <> mine.id AND other.waiting_since IS NOT NULL AND (
        other.running < mine.running
        OR other.running = mine.running
            AND GREATEST(other.waiting_since, other.served_at) < mine.served_at
    )
)
"""
# An execution that lost its lease without knowing takes no turn; it ends at its next progress.
_BEGIN = """
UPDATE exports_export SET began_at = clock_timestamp(), turn_of = task.execution_id
FROM tasks_backgroundtask task
WHERE task_id = %s AND task.id = task_id AND task.execution_id = %s
"""


def take(export: Export, lease) -> None:
    """Begin this export now, or step aside for people who come first.

    Raises:
        RetryLater: it is others' turn.
    """
    steps = _steps_aside(lease.task)
    if _is_taken(export, lease.execution_id, goes_first=steps >= MOST_STEPS):
        return
    wait = min(SHORTEST * GROWTH**steps, LONGEST)
    raise RetryLater(
        database_now() + timedelta(seconds=wait),
        _("Others come first: an export of the same person is running or was made just now."),
    )


def _steps_aside(task) -> int:
    """How often this run gave its place away, or was handed back for whatever reason."""
    handed_back = TaskAttempt.objects.filter(task=task, run=task.run)
    return handed_back.filter(outcome=AttemptOutcome.RELEASED).count()


@repeating(lock_timeouts=True)
def _is_taken(export: Export, execution_id, goes_first: bool) -> bool:
    with connection.cursor() as cursor:
        # One after the other, or two of a person's exports would each see the other come first.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if not goes_first:
            who = {"export": export.pk, "person": export.requester_id}
            cursor.execute(_OTHERS_COME_FIRST, who)
            if cursor.fetchone()[0]:
                return False
        cursor.execute(_BEGIN, [export.pk, execution_id])
    return True
