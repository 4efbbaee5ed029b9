"""What /metrics shows of the ledger and its queue: asked at each scrape, every question bounded."""

import logging
from collections import Counter

from django.db import DatabaseError, connection
from prometheus_client.core import GaugeMetricFamily

from tasks import metrics, queue, registry
from tasks.models import DispatcherStatus
from tasks.transactions import answering_within

logger = logging.getLogger(__name__)

ANSWER_MILLISECONDS = 1000  # per question; an ever longer ledger must not slow monitoring down

# Waiting and running tasks are read from the partial indexes of the dispatcher's own selections.
_LIVE = """
SELECT kind, status, count(*) FROM (
    SELECT kind, status FROM tasks_backgroundtask
    WHERE status = 'WAITING' AND dispatched_at IS NULL
    UNION ALL
    SELECT kind, status FROM tasks_backgroundtask
    WHERE status = 'WAITING' AND dispatched_at IS NOT NULL
    UNION ALL
    SELECT kind, status FROM tasks_backgroundtask WHERE status = 'RUNNING'
) live GROUP BY kind, status
"""
# The whole history; on a very long one this does not end in time and is left out.
_ENDED = """
SELECT kind, status, count(*) FROM tasks_backgroundtask
WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY kind, status
"""
# The oldest due task: two minima, each the first entry of a partial index. And the last canary of
# each queue, from a small one.
_AGES = """
SELECT GREATEST(EXTRACT(EPOCH FROM clock_timestamp() - LEAST(
    (SELECT min(run_at) FROM tasks_backgroundtask
     WHERE status = 'WAITING' AND dispatched_at IS NULL),
    (SELECT min(run_at) FROM tasks_backgroundtask
     WHERE status = 'WAITING' AND dispatched_at IS NOT NULL)
)), 0),
EXTRACT(EPOCH FROM clock_timestamp() - (
    SELECT max(finished_at) FROM tasks_backgroundtask
    WHERE kind = 'CANARY_SHORT' AND status = 'COMPLETED')),
EXTRACT(EPOCH FROM clock_timestamp() - (
    SELECT max(finished_at) FROM tasks_backgroundtask
    WHERE kind = 'CANARY_LONG' AND status = 'COMPLETED'))
"""
_ROUND_AGE = """
SELECT EXTRACT(EPOCH FROM clock_timestamp() - max(last_succeeded_at)) FROM tasks_dispatcherstatus
"""


class LedgerCollector:
    def collect(self):
        yield from self._ledger()
        yield from self._queue()

    def _ledger(self):
        up = GaugeMetricFamily("teamdesk_database_up", "Whether the database answered")
        try:
            families = [*self._tasks(), *self._rounds()]
            up.add_metric([], 1)
        except DatabaseError as error:
            logger.warning("The ledger was not measured: %s", error)
            families = []
            up.add_metric([], 0)
        yield up
        yield from families

    def _tasks(self):
        tasks = GaugeMetricFamily(
            "teamdesk_tasks", "Background tasks in the ledger", labels=["kind", "status"]
        )
        counted = GaugeMetricFamily(
            "teamdesk_tasks_history_counted",
            "0 when ended tasks are too many to be counted within a second, and left out",
        )
        live = ask(_LIVE)
        try:
            ended = ask(_ENDED)
        except DatabaseError as error:
            logger.warning("Ended tasks were not counted: %s", error)
            ended = []
            counted.add_metric([], 0)
        else:
            counted.add_metric([], 1)
        found = Counter()
        for kind, status, count in [*live, *ended]:
            found[metrics.label(kind), status] += count
        for (kind, status), count in found.items():
            tasks.add_metric([kind, status], count)
        oldest = GaugeMetricFamily(
            "teamdesk_oldest_due_seconds",
            "How long the oldest waiting task has been due; 0 when none is",
        )
        canary = GaugeMetricFamily(
            "teamdesk_canary_age_seconds",
            "Time since workers of the queue last finished a canary",
            labels=["queue"],
        )
        due, *canaries = ask(_AGES)[0]
        oldest.add_metric([], float(due or 0))
        for name, age in zip(registry.QUEUES, canaries, strict=True):
            if age is not None:
                canary.add_metric([name], float(age))
        return tasks, counted, oldest, canary

    def _rounds(self):
        age = GaugeMetricFamily(
            "teamdesk_round_success_age_seconds", "Time since the last successful round"
        )
        seconds = GaugeMetricFamily("teamdesk_round_seconds", "Duration of the last round")
        counts = GaugeMetricFamily(
            "teamdesk_round_tasks", "What the last round did, by step", labels=["step"]
        )
        since = seconds_since_success()
        if since is not None:
            age.add_metric([], since)
        status = DispatcherStatus.current()
        if status.last_seconds is not None:
            seconds.add_metric([], status.last_seconds)
        for step, count in status.last_counts.items():
            counts.add_metric([step], count)
        return age, seconds, counts

    def _queue(self):
        up = GaugeMetricFamily("teamdesk_redis_up", "Whether Redis answered")
        lengths = GaugeMetricFamily(
            "teamdesk_queue_length", "Messages in a queue; delayed jobs", labels=["queue"]
        )
        try:
            found = queue.lengths()
            up.add_metric([], 1)
        except queue.QueueUnreachable as error:
            logger.warning("The queue was not measured: %s", error)
            found = {}
            up.add_metric([], 0)
        for name, length in found.items():
            lengths.add_metric([name], length)
        yield up
        yield lengths


def seconds_since_success() -> float | None:
    """Age of the last successful round, by the database's clock alone; None before the first.

    Raises DatabaseError.
    """
    age = ask(_ROUND_AGE)[0][0]
    return None if age is None else float(age)


def ask(question: str, parameters: dict | None = None) -> list[tuple]:
    """The rows of the answer. Raises DatabaseError also when it takes longer than a second."""
    with answering_within(ANSWER_MILLISECONDS), connection.cursor() as cursor:
        cursor.execute(question, parameters)
        return cursor.fetchall()
