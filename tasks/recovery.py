"""The dispatcher's own arrows: leases that ran out, and jobs that the queue says failed."""

import logging
import time

from django.db import DatabaseError
from django.db.models import F
from django.db.models.functions import Now

from tasks import registry
from tasks.errors import clean, describe
from tasks.models import AttemptOutcome, BackgroundTask, TaskAttempt, TaskStatus
from tasks.transactions import repeating

logger = logging.getLogger(__name__)

LEASE_EXPIRED = "The worker stopped renewing its lease: it was killed, hung or cut off."


def recover_expired_leases(seconds: float) -> tuple[int, int]:
    """RUNNING without a sign of life → WAITING in the same run, or FAILED without attempts left.

    Row by row, within a budget of ``seconds``: one bad row blocks nobody, and a renewal that
    arrives meanwhile wins. Returns (recovered, failed).
    """
    deadline = time.monotonic() + seconds
    recovered = failed = 0
    expired = BackgroundTask.objects.with_expired_lease().order_by("updated_at")
    for task in expired.only("pk", "run", "kind", "attempt", "max_attempts", "execution_id"):
        if time.monotonic() > deadline:
            break
        try:
            status = recover(task)
        except DatabaseError as error:
            logger.warning("Task %s could not be recovered: %s", task.pk, describe(error))
            continue
        recovered += status == TaskStatus.WAITING
        failed += status == TaskStatus.FAILED
    return recovered, failed


@repeating
def recover(task: BackgroundTask) -> TaskStatus | None:
    """Take the lease from the execution that ``task`` was read with. None: it renewed or ended.

    The age is judged again in the UPDATE itself.
    """
    if not _locked(task):
        return None
    expired = BackgroundTask.objects.with_expired_lease().filter(
        pk=task.pk, run=task.run, execution_id=task.execution_id
    )
    common = {"execution_id": None, "updated_at": Now(), "last_error": LEASE_EXPIRED}
    changed = expired.filter(attempt__lt=F("max_attempts")).update(
        status=TaskStatus.WAITING, dispatched_at=None, **common
    )
    status = TaskStatus.WAITING
    if not changed:
        changed = expired.filter(attempt__gte=F("max_attempts")).update(
            status=TaskStatus.FAILED, finished_at=Now(), **common
        )
        status = TaskStatus.FAILED
    if not changed:
        return None
    TaskAttempt.objects.filter(execution_id=task.execution_id).close(
        AttemptOutcome.LEASE_EXPIRED, LEASE_EXPIRED
    )
    return status


def _locked(task: BackgroundTask) -> bool:
    """False: someone is changing it at this moment; the round goes on, the next looks again."""
    row = BackgroundTask.objects.filter(pk=task.pk)
    return bool(row.select_for_update(skip_locked=True).values_list("pk", flat=True))


@repeating
def queue_said_failed(task: BackgroundTask, record_attempt: int, error: str) -> TaskStatus | None:
    """WAITING → WAITING after a wait, or FAILED when attempts are used up. None: not any more.

    The queue's record decides nothing while an execution holds the lease: a process that died
    is first recovered, and only then does its failed record lead here.

    Args:
        task: as scanned; its run and attempt are the guard.
        record_attempt: the attempt that the record is about. A later one than ``task.attempt``
            means that the process died before its claim, which costs the next attempt now.
    """
    if not _locked(task):
        return None
    kind = registry.kind(task.kind)
    attempt = task.attempt + (record_attempt > task.attempt)
    mine = BackgroundTask.objects.filter(
        pk=task.pk,
        run=task.run,
        attempt=task.attempt,
        status=TaskStatus.WAITING,
        execution_id=None,
    )
    text = clean(error or "The queue reported that the job failed.")
    if attempt >= task.max_attempts:
        changed = mine.update(
            status=TaskStatus.FAILED,
            attempt=attempt,
            finished_at=Now(),
            updated_at=Now(),
            last_error=text,
        )
        return TaskStatus.FAILED if changed else None
    changed = mine.update(
        attempt=attempt,
        run_at=Now() + kind.backoff(attempt, task.max_attempts),
        updated_at=Now(),
        last_error=text,
    )
    return TaskStatus.WAITING if changed else None
