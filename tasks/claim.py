"""WAITING → RUNNING: a worker claims tasks, each with an execution of its own."""

import uuid
from collections.abc import Sequence

from django.db import connection

from tasks.models import BackgroundTask
from tasks.transactions import repeating

# One statement: the rows and their attempts are there together or not at all. Locked in id order,
# as every other statement on many rows does, so that two of them never wait in a circle. What is
# RUNNING under the asked execution was claimed by this statement before, and the answer was lost.
_CLAIM = """
WITH asked AS (
    SELECT * FROM unnest(%s::bigint[], %s::int[], %s::uuid[]) AS t (id, run, execution_id)
), locked AS (
    SELECT task.id, asked.execution_id
    FROM tasks_backgroundtask task JOIN asked USING (id, run)
    WHERE task.status = 'WAITING' AND task.run_at <= statement_timestamp()
    ORDER BY task.id
    FOR UPDATE OF task {wait}
), claimed AS (
    UPDATE tasks_backgroundtask task
    SET status = 'RUNNING',
        execution_id = locked.execution_id,
        attempt = task.attempt + 1,
        updated_at = statement_timestamp(),
        started_at = COALESCE(task.started_at, statement_timestamp()),
        progress_done = 0,
        progress_total = NULL
    FROM locked WHERE task.id = locked.id
    RETURNING {columns}
), attempts AS (
    INSERT INTO tasks_taskattempt
        (task_id, run, attempt, execution_id, worker, started_at, outcome, error, traceback)
    SELECT id, run, attempt, execution_id, %s, statement_timestamp(), '', '', '' FROM claimed
)
SELECT * FROM claimed
UNION ALL
SELECT {columns} FROM tasks_backgroundtask task JOIN asked USING (id, run, execution_id)
WHERE task.status = 'RUNNING'
ORDER BY id
"""


def claim(
    jobs: Sequence[tuple[int, int]], worker: str = "", *, past_held_rows: bool = False
) -> list[BackgroundTask]:
    """Those of ``jobs`` (task id, run) that are this run's, waiting and due: the rows as claimed,
    in id order. A refused one is left out, and never an error.

    Args:
        past_held_rows: leave out rows that others hold at this moment, instead of waiting for
            them: a neighbour in a batch must not wait for another's holder.
    """
    executions = [uuid.uuid4() for _ in jobs]  # the same in each repetition
    return _claim(jobs, executions, worker[:200], "SKIP LOCKED" if past_held_rows else "")


@repeating(in_transaction=False)
def _claim(
    jobs: Sequence[tuple[int, int]], executions: list[uuid.UUID], worker: str, wait: str
) -> list[BackgroundTask]:
    columns = ", ".join(f"task.{column}" for column in BackgroundTask.columns())
    ids, runs = [task_id for task_id, _ in jobs], [run for _, run in jobs]
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM.format(wait=wait, columns=columns), [ids, runs, executions, worker])
        return [BackgroundTask.from_row(row) for row in cursor.fetchall()]
