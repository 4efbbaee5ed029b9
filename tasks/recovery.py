"""The dispatcher's own arrows: leases that ran out, and jobs that the queue says failed."""

import logging
import time
from collections.abc import Iterable

from django.conf import settings
from django.db import DatabaseError
from django.db.models.functions import Now

from tasks import metrics, registry
from tasks.errors import clean, describe
from tasks.models import AttemptOutcome, BackgroundTask, TaskAttempt, TaskStatus
from tasks.transactions import repeating

logger = logging.getLogger(__name__)

LEASE_EXPIRED = "The worker stopped renewing its lease: it was killed, hung or cut off."


def recover_expired_leases(seconds: float) -> tuple[int, int]:
    """RUNNING without a sign of life → WAITING in the same run, or FAILED without attempts left.

    In batches within a budget of ``seconds``, since a machine that dies holds many leases; where
    PostgreSQL refuses a batch, row by row: one bad row blocks nobody. A renewal that arrives
    meanwhile wins. Returns (recovered, failed).
    """
    deadline = time.monotonic() + seconds
    statuses: dict[int, TaskStatus] = {}
    expired = BackgroundTask.objects.with_expired_lease().order_by("updated_at")
    tasks = list(expired.only("pk", "kind", "execution_id"))
    size = settings.TEAMDESK_BATCH_SIZE
    for start in range(0, len(tasks), size):
        if time.monotonic() > deadline:
            break
        batch = tasks[start : start + size]
        try:
            statuses |= recover_together(batch)
        except DatabaseError as error:
            logger.warning("%d tasks are recovered one by one: %s", len(batch), describe(error))
            statuses |= _one_by_one(batch, deadline)
    for task in tasks:
        if status := statuses.get(task.pk):
            metrics.lease_recovered(task.kind, has_failed=status == TaskStatus.FAILED)
    found = list(statuses.values())
    return found.count(TaskStatus.WAITING), found.count(TaskStatus.FAILED)


def _one_by_one(tasks, deadline: float) -> dict[int, TaskStatus]:
    statuses = {}
    for task in tasks:
        if time.monotonic() > deadline:
            break
        try:
            statuses |= recover_together([task])
        except DatabaseError as error:
            logger.warning("Task %s could not be recovered: %s", task.pk, describe(error))
    return statuses


@repeating
def recover_together(tasks: Iterable[BackgroundTask]) -> dict[int, TaskStatus]:
    """Take the leases from the executions that ``tasks`` were read with: {id: status}, without
    those that renewed, ended, or are being changed at this moment.

    The age is judged again once the rows are locked, and in the UPDATE itself.
    """
    ids = [task.pk for task in tasks]
    executions = [task.execution_id for task in tasks]
    rows = BackgroundTask.objects.filter(pk__in=ids).order_by("pk")
    locked = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
    expired = BackgroundTask.objects.with_expired_lease().filter(
        pk__in=locked, execution_id__in=executions
    )
    statuses = {
        pk: TaskStatus.WAITING if attempt < max_attempts else TaskStatus.FAILED
        for pk, attempt, max_attempts in expired.values_list("pk", "attempt", "max_attempts")
    }
    common = {"execution_id": None, "updated_at": Now(), "last_error": LEASE_EXPIRED}
    for status, changes in (
        (TaskStatus.WAITING, {"dispatched_at": None}),
        (TaskStatus.FAILED, {"finished_at": Now()}),
    ):
        those = [pk for pk in statuses if statuses[pk] == status]
        if those:
            expired.filter(pk__in=those).update(status=status, **changes, **common)
    TaskAttempt.objects.filter(task__in=statuses, execution_id__in=executions).close(
        AttemptOutcome.LEASE_EXPIRED, LEASE_EXPIRED
    )
    return statuses


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
