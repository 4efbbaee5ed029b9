"""How the ledger stands now: a handful of numbers, each read from a partial index."""

from dataclasses import dataclass, field

from django.db import connection

from tasks import queue
from tasks.models import DispatcherStatus
from tasks.models.dispatcher_status import LATEST_SUCCESS_SECONDS
from tasks.transactions import answering_within

COUNT_LIMIT = 10_000  # "10,000 or more" says enough
BACKLOG_SECONDS = 60  # that a due task may wait before people are told
ANSWER_MILLISECONDS = 2_000

# Waiting tasks are in two partial indexes, the dispatcher's: never handed over, or checked.
_NOW = """
WITH due AS (
    (SELECT run_at FROM tasks_backgroundtask
     WHERE status = 'WAITING' AND dispatched_at IS NULL AND run_at <= clock_timestamp()
     ORDER BY run_at LIMIT %(limit)s)
    UNION ALL
    (SELECT run_at FROM tasks_backgroundtask
     WHERE status = 'WAITING' AND dispatched_at IS NOT NULL AND run_at <= clock_timestamp()
     ORDER BY run_at LIMIT %(limit)s)
), later AS (
    (SELECT 1 FROM tasks_backgroundtask
     WHERE status = 'WAITING' AND dispatched_at IS NULL AND run_at > clock_timestamp()
     LIMIT %(limit)s)
    UNION ALL
    (SELECT 1 FROM tasks_backgroundtask
     WHERE status = 'WAITING' AND dispatched_at IS NOT NULL AND run_at > clock_timestamp()
     LIMIT %(limit)s)
)
SELECT
    (SELECT count(*) FROM due),
    (SELECT EXTRACT(EPOCH FROM clock_timestamp() - min(run_at)) FROM due),
    (SELECT count(*) FROM later),
    (SELECT count(*) FROM (
        SELECT 1 FROM tasks_backgroundtask WHERE status = 'RUNNING' LIMIT %(limit)s) AS running),
    (SELECT count(*) FROM (
        SELECT 1 FROM tasks_backgroundtask WHERE status = 'FAILED' LIMIT %(limit)s) AS failed),
    (SELECT EXTRACT(EPOCH FROM clock_timestamp() - max(last_succeeded_at))
     FROM tasks_dispatcherstatus)
"""


@dataclass(frozen=True)
class Count:
    """A number that stops at COUNT_LIMIT."""

    number: int

    @property
    def shown(self) -> int:
        return min(self.number, COUNT_LIMIT)

    @property
    def is_capped(self) -> bool:
        return self.number >= COUNT_LIMIT


@dataclass(frozen=True)
class Figures:
    """``oldest_due_seconds``: how long the oldest waiting task has been due; None when none is.
    ``round_age_seconds``: since the last successful round; None before the first. ``lengths``: of
    Celery's lists and the delayed set; empty when Redis did not answer."""

    due: Count
    oldest_due_seconds: float | None
    later: Count
    running: Count
    failed: Count
    round_age_seconds: float | None
    dispatcher: DispatcherStatus
    lengths: dict[str, int] = field(default_factory=dict)

    @property
    def is_dispatching(self) -> bool:
        age = self.round_age_seconds
        return age is not None and age <= LATEST_SUCCESS_SECONDS

    @property
    def queued(self) -> int:
        return sum(length for name, length in self.lengths.items() if name != "delayed")

    @property
    def is_late(self) -> bool:
        return (self.oldest_due_seconds or 0) > BACKLOG_SECONDS

    @property
    def has_newer_fault(self) -> bool:
        """The last round that ended, ended with a fault."""
        status = self.dispatcher
        if status.last_failed_at is None:
            return False
        return status.last_succeeded_at is None or status.last_failed_at > status.last_succeeded_at


def figures() -> Figures:
    """Raises DatabaseError."""
    with answering_within(ANSWER_MILLISECONDS), connection.cursor() as cursor:
        cursor.execute(_NOW, {"limit": COUNT_LIMIT})
        due, oldest, later, running, failed, age = cursor.fetchone()
    return Figures(
        Count(due),
        None if oldest is None else float(oldest),
        Count(later),
        Count(running),
        Count(failed),
        None if age is None else float(age),
        DispatcherStatus.current(),
        _lengths(),
    )


def _lengths() -> dict[str, int]:
    try:
        return queue.lengths()
    except queue.QueueUnreachable:
        return {}
