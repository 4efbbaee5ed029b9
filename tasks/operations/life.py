"""The life of one task: what happened to it, in order, as far as its rows tell."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from tasks.models import BackgroundTask, TaskAttempt


@dataclass(frozen=True)
class Passage:
    """One attempt with its timings in seconds. ``idle``: since the attempt before it ended, or
    since the task was made; ``took``: None while it runs."""

    attempt: TaskAttempt
    idle: float | None
    took: float | None


def life(task: BackgroundTask) -> list[Passage]:
    """Every attempt of every run, newest first."""
    passages, before = [], None
    attempts = task.attempts.order_by("id").annotate(duration=F("finished_at") - F("started_at"))
    for attempt in attempts:
        passages.append(
            Passage(
                attempt,
                _seconds(before.finished_at if before else task.created_at, attempt.started_at),
                attempt.duration.total_seconds() if attempt.duration is not None else None,
            )
        )
        before = attempt
    return passages[::-1]


def _seconds(since: datetime | None, until: datetime) -> float | None:
    return None if since is None else max((until - since).total_seconds(), 0)
