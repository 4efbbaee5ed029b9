"""The fast path: hand new work to the queue right after its commit, without waiting for a round.

It makes exports start in milliseconds; correctness never depends on it. It never stamps
``dispatched_at``, so the next round checks what it did.
"""

import logging
import threading

from django.conf import settings
from django.db import connection, transaction

from tasks import metrics, queue
from tasks.rest import Rest

logger = logging.getLogger(__name__)

SECONDS = 0.25  # at most, in all

rest = Rest(seconds=5)


class _HandOver:
    """Run once, after the commit, for all tasks of one transaction."""

    def __init__(self):
        self.tasks: list = []

    def __call__(self):
        # Registered once per task so that it outlives a rolled back savepoint; only the first
        # call finds work. Tasks of rolled back savepoints are not in the table any more.
        tasks, self.tasks = self.tasks, []
        if tasks and not rest.is_on:
            try:
                _hand_over(tasks)
            except Exception as error:  # noqa: BLE001  the dispatcher does it in the next round
                rest.begin()
                metrics.fast_path_failures.inc()
                logger.warning("Fast path off for %d s: %s", rest.seconds, error)


def hand_over_on_commit(task) -> None:
    """Hand this task over after the current transaction commits, together with its others.

    ``task`` carries ``is_due`` by the database's clock.
    """
    if not settings.TEAMDESK_FAST_PATH:
        return
    pending = (hook for _, hook, *_ in connection.run_on_commit if isinstance(hook, _HandOver))
    hand_over = next(pending, None) or _HandOver()
    hand_over.tasks.append(task)
    transaction.on_commit(hand_over, robust=True)


def _hand_over(tasks: list) -> None:
    from tasks.models import BackgroundTask

    if len(tasks) == 1:
        # The hook of a rolled back savepoint is never called: this one was committed as it is.
        due = [task for task in tasks if task.is_new_and_due]
    else:
        due = BackgroundTask.objects.new_and_due([task.pk for task in tasks])
    if due:
        _within_time(lambda: queue.add(due, patience=SECONDS))


def _within_time(work) -> None:
    """A hand-over waits for Redis a dozen times. Whoever waits for it waits SECONDS in all; what
    is not done by then may still be done, which harms nobody."""
    errors: list[Exception] = []

    def attempt():
        try:
            work()
        except Exception as error:  # noqa: BLE001  raised again below
            errors.append(error)

    thread = threading.Thread(target=attempt, name="fast path", daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        raise queue.QueueUnreachable(f"Not handed over within {SECONDS} s")
    if errors:
        raise errors[0]
