"""The soak's own kinds: each completed run leaves one row, and nothing would stop a second one."""

import time

from django.db import connection

from tasks.registry import LONG, PermanentFailure, handles

LADDER = (1.0,) * 49  # fifty attempts, soon after each other

# No unique constraint on effects: what is done twice must show. Orders are the business rows that
# are written in the transaction of their task.
_TABLES = """
CREATE TABLE soak_orders (token text PRIMARY KEY, task bigint NOT NULL);
CREATE TABLE soak_effects (
    id bigserial PRIMARY KEY, task bigint NOT NULL, run int NOT NULL, execution uuid NOT NULL
);
"""


def make_tables() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)


def leave_effect(task) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO soak_effects (task, run, execution) VALUES (%s, %s, %s)",
            [task.pk, task.run, task.execution_id],
        )


@handles("SOAK", ladder=LADDER, batch=20)
def soak(task, lease):
    if task.payload.get("fails") and task.run == 0:
        raise PermanentFailure("It was ordered to fail until a person retries it.")
    return lambda: leave_effect(task)


@handles("SOAK_SLOW", queue=LONG, time_limit=60, ladder=LADDER)
def soak_slow(task, lease):
    """Works for ``payload["seconds"]``, which may be longer than a lease."""
    steps = max(1, int(task.payload["seconds"] / 0.25))
    for step in range(steps):
        lease.check()
        time.sleep(0.25)
        if step % 4 == 0:
            lease.progress(step, steps)
    return lambda: leave_effect(task)
