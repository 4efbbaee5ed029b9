"""Signs of life: a side thread renews the leases of what a worker's process runs."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import copy_context

from django.conf import settings
from django.db import connection, connections

from tasks.errors import describe

logger = logging.getLogger(__name__)

# Past rows that others hold, in most cases the very finish of this batch: their last sign of life
# lasts for several renewals. What this returns is not these executions' any more.
_RENEW = """
WITH held AS (
    SELECT * FROM unnest(%s::bigint[], %s::int[], %s::uuid[]) AS t (id, run, execution_id)
), locked AS (
    SELECT task.id FROM tasks_backgroundtask task JOIN held USING (id, run, execution_id)
    WHERE task.status = 'RUNNING'
    ORDER BY task.id
    FOR UPDATE OF task SKIP LOCKED
), renewed AS (
    UPDATE tasks_backgroundtask task SET updated_at = statement_timestamp()
    FROM locked WHERE task.id = locked.id
)
SELECT held.id FROM held LEFT JOIN tasks_backgroundtask task USING (id, run, execution_id)
WHERE task.id IS NULL
"""


# What ends sooner tells the queue once, at its end: its record said that it was on its way.
_MOMENT_SECONDS = 1


@contextmanager
def kept_alive(leases: Sequence, when_it_takes_time: Callable[[], None] | None = None):
    """Renews ``leases`` on a connection of its own, none beyond its kind's time limit. What is
    taken off the list meanwhile has ended.

    One that was taken from its execution is told so, and its neighbours are not disturbed.

    Args:
        when_it_takes_time: is called from the side, once, if the block does not end in a moment.
    """
    done = threading.Event()
    thread = threading.Thread(
        target=copy_context().run,  # its lines are about the same
        args=(_renew_until, done, leases, when_it_takes_time),
        name=f"lease {leases[0].task}",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=settings.TEAMDESK_RENEWAL_SECONDS)


def _renew_until(done: threading.Event, leases: Sequence, when_it_takes_time) -> None:
    try:
        if when_it_takes_time:
            if done.wait(_MOMENT_SECONDS):
                return
            when_it_takes_time()
        while any(lease.may_be_renewed for lease in list(leases)):
            if done.wait(settings.TEAMDESK_RENEWAL_SECONDS):
                return
            live = [lease for lease in list(leases) if lease.counted_renewal()]
            try:
                _renew(live)
            except Exception as error:  # noqa: BLE001  the next renewal may succeed
                logger.warning("%s was not renewed: %s", leases[0].task, describe(error))
                connection.close()
    finally:
        connections.close_all()


def _renew(leases: list) -> None:
    if len(leases) == 1:
        leases[0].renew_if_held()
    elif leases:
        with connection.cursor() as cursor:
            cursor.execute(
                _RENEW,
                [
                    [lease.task.pk for lease in leases],
                    [lease.task.run for lease in leases],
                    [lease.execution_id for lease in leases],
                ],
            )
            lost = {pk for (pk,) in cursor.fetchall()}
        for lease in leases:
            if lease.task.pk in lost:
                lease.lose()
