"""What happened in the last hours: attempts that ended, and how long tasks waited and ran.

Read from the attempts, of which there is one per claim. Attempts are found by ``started_at``, which
has a block range index: it costs their writers next to nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from tasks import registry
from tasks.clock import database_now
from tasks.transactions import answering_within

ANSWER_MILLISECONDS = 3_000
LONGEST_RUN = timedelta(hours=2)  # beyond every kind's time limit


@dataclass(frozen=True)
class Span:
    """How far back, in steps of which width."""

    hours: int
    step: timedelta

    @property
    def length(self) -> timedelta:
        return timedelta(hours=self.hours)


SPANS = {
    span.hours: span
    for span in (
        Span(1, timedelta(minutes=1)),
        Span(24, timedelta(minutes=30)),
        Span(7 * 24, timedelta(hours=3)),
    )
}


@dataclass
class Step:
    """One step of time. Seconds of waiting and running are None when nothing began or ended."""

    begins_at: datetime
    completed: int = 0
    failed: int = 0
    handed_back: int = 0
    wait_median: float | None = None
    wait_p95: float | None = None
    run_median: float | None = None
    run_p95: float | None = None


# An attempt that ended failed or was lost; one that was handed back or cancelled is neither.
_ENDED = """
SELECT date_bin(%(step)s, attempt.finished_at, 'epoch'::timestamptz) AS begins_at,
       count(*) FILTER (WHERE outcome = 'completed'),
       count(*) FILTER (WHERE outcome IN ('failed', 'lease_expired')),
       count(*) FILTER (WHERE outcome IN ('released', 'cancelled')),
       percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (
           ORDER BY EXTRACT(EPOCH FROM attempt.finished_at - attempt.started_at)::float8)
FROM tasks_taskattempt attempt
JOIN tasks_backgroundtask task ON task.id = attempt.task_id AND task.kind <> ALL (%(canaries)s)
WHERE attempt.started_at >= %(since)s::timestamptz - %(longest_run)s
  AND attempt.finished_at >= %(since)s
GROUP BY 1
"""
# Only the latest attempt of a task is sure to have begun after the run_at that its row shows.
_BEGAN = """
SELECT date_bin(%(step)s, attempt.started_at, 'epoch'::timestamptz) AS begins_at,
       percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (
           ORDER BY GREATEST(EXTRACT(EPOCH FROM attempt.started_at - task.run_at)::float8, 0))
FROM tasks_taskattempt attempt
JOIN tasks_backgroundtask task
  ON task.id = attempt.task_id AND task.run = attempt.run AND task.attempt = attempt.attempt
     AND task.kind <> ALL (%(canaries)s)
WHERE attempt.started_at >= %(since)s AND task.status <> 'WAITING'
GROUP BY 1
"""


def history(span: Span) -> list[Step]:
    """The steps of ``span`` up to now, oldest first, none left out. Raises DatabaseError."""
    first = _floor(database_now() - span.length, span.step) + span.step
    parameters = {
        "step": span.step,
        "since": first,
        "longest_run": LONGEST_RUN,
        "canaries": list(registry.CANARIES.values()),  # they do nobody's work
    }
    count = span.length // span.step
    steps = {first + n * span.step: Step(first + n * span.step) for n in range(count)}
    with answering_within(ANSWER_MILLISECONDS), connection.cursor() as cursor:
        cursor.execute(_ENDED, parameters)
        for begins_at, completed, failed, handed_back, (median, p95) in cursor.fetchall():
            step = steps.setdefault(begins_at, Step(begins_at))
            step.completed, step.failed, step.handed_back = completed, failed, handed_back
            step.run_median, step.run_p95 = median, p95
        cursor.execute(_BEGAN, parameters)
        for begins_at, (median, p95) in cursor.fetchall():
            step = steps.setdefault(begins_at, Step(begins_at))
            step.wait_median, step.wait_p95 = median, p95
    return [steps[at] for at in sorted(steps)]


def _floor(moment: datetime, step: timedelta) -> datetime:
    """The beginning of the step that ``moment`` lies in; steps are counted from 1970."""
    epoch = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return epoch + (moment - epoch) // step * step
