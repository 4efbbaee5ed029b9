"""RUNNING → COMPLETED: one task, or several whose effects are committed together."""

import time
from collections.abc import Sequence

from django.db import connection, transaction

from tasks import correlation
from tasks.registry import Effect

# A group's transaction locks what the effects of several tasks lock, in an order that no verb
# knows, so it could close a circle with one that locks several tickets. PostgreSQL ends whoever
# has waited ``deadlock_timeout`` (1 s); a group that is over before then, with whatever it waits
# for, is never the reason that a verb is ended. It gives way; its tasks then finish one by one.
_GROUP_SECONDS = 0.4  # until the last statement of a group begins
_GROUP_LIMITS = """
SELECT set_config('lock_timeout', '100ms', true), set_config('statement_timeout', '400ms', true)
"""

# Locked in id order, see tasks/claim.py. The guard is the execution: what was cancelled or
# recovered meanwhile is not among the rows.
_COMPLETE = """
WITH held AS (
    SELECT * FROM unnest(%s::bigint[], %s::int[], %s::uuid[]) AS t (id, run, execution_id)
), locked AS (
    SELECT task.id, task.execution_id
    FROM tasks_backgroundtask task JOIN held USING (id, run, execution_id)
    WHERE task.status = 'RUNNING'
    ORDER BY task.id
    FOR UPDATE OF task
), completed AS (
    UPDATE tasks_backgroundtask task
    SET status = 'COMPLETED',
        execution_id = NULL,
        updated_at = statement_timestamp(),
        finished_at = statement_timestamp(),
        expires_at = statement_timestamp() + %s::interval,
        last_error = ''
    FROM locked WHERE task.id = locked.id
    RETURNING locked.execution_id
), attempts AS (
    UPDATE tasks_taskattempt attempt
    SET outcome = 'completed', finished_at = statement_timestamp(), error = '', traceback = ''
    FROM completed
    WHERE attempt.execution_id = completed.execution_id AND attempt.finished_at IS NULL
)
SELECT count(*) FROM completed
"""


class NotTogether(Exception):
    """The tasks of a group are to be finished one by one."""


def record_completed(leases: Sequence) -> int:
    """COMPLETED for leases of one kind, in the caller's transaction. Returns how many that were."""
    ttl = leases[0].kind.result_ttl
    with connection.cursor() as cursor:
        cursor.execute(
            _COMPLETE,
            [
                [lease.task.pk for lease in leases],
                [lease.task.run for lease in leases],
                [lease.execution_id for lease in leases],
                ttl() if ttl else None,
            ],
        )
        return cursor.fetchone()[0]


def complete_together(finished: Sequence[tuple[object, Effect | None]]) -> None:
    """All effects and all COMPLETED in one transaction, for (lease, effect) of one kind.

    Raises NotTogether or whatever an effect or the database raised; then nothing of it exists.
    """
    deadline = time.monotonic() + _GROUP_SECONDS

    def in_time(execute, *args):
        if time.monotonic() > deadline:
            raise NotTogether("Their effects take long together.")
        return execute(*args)

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_GROUP_LIMITS)
        with connection.execute_wrapper(in_time):
            for lease, effect in sorted(finished, key=_by_ticket):
                if effect:
                    with correlation.of_task(lease.task):
                        effect()
            leases = [lease for lease, _ in finished]
            if record_completed(leases) != len(leases):
                raise NotTogether("One of them was taken from its execution.")
        if time.monotonic() > deadline:  # the commit checks foreign keys, which may wait
            raise NotTogether("Their effects take long together.")


def _by_ticket(finished):
    """Tickets are locked in one order where that is known."""
    lease, _ = finished
    return (lease.task.ticket_id or 0, lease.task.pk)
