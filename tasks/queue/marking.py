"""The worker's side: compare-and-set on the message, never backwards, never fatal."""

import logging
from collections.abc import Iterable, Mapping

from django.conf import settings

from tasks import scripts
from tasks.queue.connections import (
    DELAYED,
    QueueUnreachable,
    conversation,
    record_key,
    watermark_key,
)
from tasks.records import LOST_AFTER_SECONDS, State, microseconds

logger = logging.getLogger(__name__)

TOMBSTONE_SECONDS = 60  # outlives a publisher that records a job which already ended

# One job or several of the same message, whose records are written in one step.
Jobs = str | Iterable[str]


def mark_started(jobs: Jobs, message: str, queue: str, published_at: int) -> None:
    """A message was taken off its list: raises the queue's watermark."""
    _mark(_without_attempt(jobs), message, State.ACTIVE, queue, published_at)


def mark_claimed(
    attempts: Mapping[str, int], message: str, queue: str = "", published_at: int = 0
) -> None:
    """Started, and claimed as these attempts: {job: attempt}."""
    _mark(attempts, message, State.ACTIVE, queue, published_at)


def mark_ended(
    jobs: Jobs | Mapping[str, int], message: str, queue: str = "", published_at: int = 0
) -> None:
    """The queue is done with this message. The record goes within a minute, not at once, so that a
    publisher which records it late finds that it already ended. Raises the queue's watermark, for
    a message whose start was not worth a mark of its own."""
    attempts = jobs if isinstance(jobs, Mapping) else _without_attempt(jobs)
    _mark(attempts, message, State.COMPLETED, queue, published_at, ttl=TOMBSTONE_SECONDS)


def mark_failed(jobs: Jobs, message: str, error: str) -> None:
    """The process died or Celery gave up. A fact in the record; the ledger is not touched here."""
    _mark(_without_attempt(jobs), message, State.FAILED, error=error[:500])


def mark_delayed(task, message: str) -> None:
    """A claim was refused because the task is not yet due: wait in the delayed set again. Nothing
    if another message went out for it meanwhile."""
    try:
        with conversation() as client:
            set_delayed(client, task, message)
    except QueueUnreachable as error:
        logger.info("%s was not put back among the delayed jobs: %s", task, error)


def set_delayed(client, task, message: str | None = None) -> None:
    """Record ``task`` as delayed; with ``message`` only if its record is of that message."""
    at = microseconds(task.run_at)
    until = at // 1_000_000 + settings.TEAMDESK_RECORD_SECONDS
    scripts.SET_DELAYED(
        client=client,
        keys=[record_key(task.job_id), DELAYED],
        args=[task.job_id, task.attempt + 1, at, until, int(message is not None), message or ""],
    )


def _without_attempt(jobs: Jobs) -> dict[str, str]:
    return dict.fromkeys([jobs] if isinstance(jobs, str) else jobs, "")


def _mark(
    attempts: Mapping[str, int | str],
    message: str,
    state: State,
    queue: str = "",
    published_at: int = 0,
    error: str = "",
    ttl: int | None = None,
) -> None:
    """Best effort: a worker goes on without its records."""
    ahead = LOST_AFTER_SECONDS * 1_000_000
    ttl = ttl or settings.TEAMDESK_RECORD_SECONDS
    try:
        with conversation(1.0) as client:
            scripts.MARK(
                client=client,
                keys=[watermark_key(queue) if queue else "", *map(record_key, attempts)],
                args=[message, state, published_at, ttl, error, ahead, *attempts.values()],
            )
    except QueueUnreachable as unreachable:
        logger.warning("A queue record was not written: %s", unreachable)
