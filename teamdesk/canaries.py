"""Do workers live? Judged by their canaries: an empty task a minute in each queue.

A canary that does not come back while other tasks run is behind a backlog; one that does not come
back while nothing runs has nobody to take it. All from the ledger, by the database's clock.
"""

from dataclasses import dataclass

from tasks import registry
from tasks.operations.figures import BACKLOG_SECONDS
from teamdesk.measures import ask

LATE_SECONDS = 90  # a slot of a minute, and time for a round, a worker's start, a retry

# {kind} is a constant of ours, so that the planner sees which partial index serves it. Short is
# also the queue of kinds that nobody knows here.
_OF_QUEUE = """
SELECT
    -- When the last canary came back.
    EXTRACT(EPOCH FROM clock_timestamp() - last.done_at),
    -- Since when none does: the first one inserted after it, but not longer than rounds succeed
    -- without a gap, or every start after a quiet weekend would be an alarm.
    CASE WHEN missing.since IS NOT NULL THEN EXTRACT(EPOCH FROM clock_timestamp() - GREATEST(
        missing.since, (SELECT max(steady_since) FROM tasks_dispatcherstatus)
    )) END,
    EXISTS (SELECT FROM tasks_backgroundtask
            WHERE kind = '{kind}' AND kind IN ('CANARY_SHORT', 'CANARY_LONG')
              AND finished_at IS NULL),
    -- Signs of workers' life: a lease in force, or something done a moment ago.
    EXISTS (SELECT FROM tasks_backgroundtask
            WHERE status = 'RUNNING' AND kind {of_queue}
              AND updated_at > statement_timestamp() - make_interval(secs => %(lease)s))
    OR EXISTS (SELECT FROM tasks_backgroundtask
               WHERE status = 'COMPLETED' AND kind {of_queue}
                 AND finished_at > statement_timestamp() - interval '10 seconds'),
    -- The oldest due task.
    EXTRACT(EPOCH FROM clock_timestamp() - LEAST(
        (SELECT run_at FROM tasks_backgroundtask
         WHERE status = 'WAITING' AND dispatched_at IS NULL AND kind {of_queue}
           AND run_at <= statement_timestamp() ORDER BY run_at LIMIT 1),
        (SELECT run_at FROM tasks_backgroundtask
         WHERE status = 'WAITING' AND dispatched_at IS NOT NULL AND kind {of_queue}
           AND run_at <= statement_timestamp() ORDER BY run_at LIMIT 1)
    ))
FROM (
    SELECT max(finished_at) AS done_at FROM tasks_backgroundtask
    WHERE kind = '{kind}' AND kind IN ('CANARY_SHORT', 'CANARY_LONG') AND status = 'COMPLETED'
) last CROSS JOIN LATERAL (
    SELECT min(created_at) AS since FROM tasks_backgroundtask
    WHERE kind = '{kind}' AND kind IN ('CANARY_SHORT', 'CANARY_LONG')
      AND (finished_at IS NULL
           OR (status = 'FAILED' AND finished_at > COALESCE(last.done_at, '-infinity')))
) missing
"""


@dataclass(frozen=True)
class Workers:
    """Those of one queue. All times in seconds; None: there is no such thing."""

    canary_done: float | None
    canary_missing: float | None
    has_canary: bool
    are_busy: bool
    oldest_due: float | None

    @property
    def are_dead(self) -> bool:
        return self._is_late and not self.are_busy

    @property
    def _is_late(self) -> bool:
        return self.canary_missing is not None and self.canary_missing > LATE_SECONDS

    def describe(self) -> str:
        """ "ok", or what is the matter: a backlog, or nobody there."""
        if self.are_dead:
            age = self.canary_done or self.canary_missing
            return f"no worker has finished a canary for {age:.0f} s and nothing is running"
        if (self.oldest_due or 0) > BACKLOG_SECONDS:
            waits = f"backlog: oldest due task waits {self.oldest_due:.0f} s"
            if self.are_busy:
                return f"{waits}, workers are busy"
            if (self.canary_missing or 0) > BACKLOG_SECONDS:
                return waits  # it may be the canary that waits
            return f"{waits}, although canaries come back"
        if not self.has_canary and (self.canary_done is None or self.canary_done > LATE_SECONDS):
            return "unknown: rounds insert no canary"
        return "ok"


def workers_of(queue: str, lease_seconds: float) -> Workers:
    """Raises DatabaseError."""
    long = [name for name, kind in registry.kinds().items() if kind.queue == registry.LONG]
    of_queue = "= ANY(%(long)s)" if queue == registry.LONG else "<> ALL(%(long)s)"
    question = _OF_QUEUE.format(kind=registry.CANARIES[queue], of_queue=of_queue)
    done, missing, has_canary, are_busy, oldest = ask(
        question, {"long": long, "lease": lease_seconds}
    )[0]
    return Workers(_seconds(done), _seconds(missing), has_canary, are_busy, _seconds(oldest))


def _seconds(found) -> float | None:
    return None if found is None else float(found)
