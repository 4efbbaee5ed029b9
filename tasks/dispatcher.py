"""One round: compare the ledger with the queue, hand work over, recover, purge.

The order within a hand-over is fixed: publish, record, stamp. A crash between two of them costs a
duplicate message, which the claim refuses; the other order would cost the task.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from tasks import metrics, queue, recovery, registry
from tasks.clock import database_now
from tasks.errors import describe
from tasks.models import BackgroundTask, Chore, DispatcherStatus, TaskStatus
from tasks.queue import QueueUnreachable
from tasks.records import Verdict, View, judge
from tasks.round_lock import RoundLock, only_round
from tasks.transactions import repeating

logger = logging.getLogger(__name__)

SLICE = 5_000  # ids of due tasks, brought by one question
PROMOTE_SECONDS = RECOVER_SECONDS = PURGE_SECONDS = 1.0

Tasks = list[BackgroundTask]


@dataclass
class Report:
    """What a round did."""

    scanned: int = 0
    enqueued: int = 0  # handed over for the first time
    rechecked: int = 0
    readded: int = 0  # of those, handed over again
    promoted: int = 0
    recovered: int = 0
    failed: int = 0
    purged: int = 0
    seconds: float = 0.0

    @property
    def handed_over(self) -> int:
        return self.enqueued + self.readded + self.promoted

    @property
    def counts(self) -> dict[str, int]:
        return {key: value for key, value in asdict(self).items() if key != "seconds"}


class RoundFault(Exception):
    """A part of the round could not be done; the other parts were. ``report`` says what."""

    def __init__(self, text: str, report: Report):
        super().__init__(text)
        self.report = report


def dispatch_once(
    wait_seconds: float = 0, limit: int | None = None, lock: RoundLock | None = None
) -> Report:
    """Run one round.

    Args:
        wait_seconds: how long to wait for another process's round to end.
        limit: hand over at most so many tasks; what is left is the next round's.
        lock: of a process that runs round after round; its connection is then kept for the next.

    Raises:
        RoundInProgress: it did not end.
        RoundFault: the queue could not be reached, or a step failed. Recovery and purge were still
            tried. The next round tries again.
    """
    started = time.monotonic()
    with transaction.atomic(durable=True):
        pass  # refuses a caller's transaction: what is not committed must not be handed over
    with lock.held(wait_seconds) if lock else only_round(wait_seconds):
        return _round(limit, started)


def _round(limit: int | None, started: float) -> Report:
    report, faults = Report(), []
    DispatcherStatus.record_start()
    if settings.TEAMDESK_CHORES:
        _try(faults, "chores", Chore.objects.insert_due)
    if _try(faults, "hand-over", lambda: _scan(report, limit)):
        _try(faults, "promotion", lambda: _promote(report, limit))
    _try(faults, "recovery", lambda: _recover(report))
    for purge in registry.registered_purges():
        _try(faults, "purge", lambda purge=purge: _purge(purge, report))
    report.seconds = round(time.monotonic() - started, 3)
    metrics.round_ended(report, is_success=not faults)
    if faults:
        text = "; ".join(faults)
        DispatcherStatus.record_fault(report.seconds, report.counts, text)
        raise RoundFault(text, report)
    DispatcherStatus.record_success(report.seconds, report.counts)
    return report


def _try(faults: list[str], name: str, step: Callable[[], None]) -> bool:
    """Run a step of the round; its failure is noted and must not stop the other steps. False only
    when the queue was out of reach, so that nobody asks it again in this round."""
    try:
        step()
    except QueueUnreachable as error:
        faults.append(f"{name}: {describe(error)}")
        return False
    except DatabaseError as error:
        faults.append(f"{name}: {describe(error)}")
    except Exception as error:
        logger.exception("The round's %s failed", name)
        faults.append(f"{name}: {describe(error)}")
    return True


# --- Scan -----------------------------------------------------------------------------------------


def _scan(report: Report, limit: int | None) -> None:
    """New tasks first, then due ones, both drained within the budget; then one batch of the rest,
    always, so that a flood of new work cannot starve what was handed over long ago."""
    deadline = time.monotonic() + settings.TEAMDESK_ROUND_BUDGET_SECONDS
    tasks = BackgroundTask.objects
    has_new, has_due, has_others = tasks.has_to_hand_over()
    if has_new:
        _drain_new(tasks.never_dispatched(), report, limit, deadline)
    if has_due:
        _drain_due(tasks.due_rechecks(), report, limit, deadline)
    if has_others:
        others = _batch(tasks.other_rechecks(), _batch_size(report, limit))
        _hand_over(others, report, recheck=True)


def _drain_new(new, report: Report, limit: int | None, deadline: float) -> None:
    unstamped: set[int] = set()
    while time.monotonic() < deadline:
        batch = _batch(_without(unstamped, new), _batch_size(report, limit))
        if not batch:
            return
        unstamped |= {task.pk for task in batch} - _hand_over(batch, report)


def _drain_due(due, report: Report, limit: int | None, deadline: float) -> None:
    """No index has them in their order: each question sorts all of them, so one question brings the
    ids of many batches."""
    unstamped: set[int] = set()
    ids: list[int] = []
    while time.monotonic() < deadline and (size := _batch_size(report, limit)):
        if not ids:
            ids = list(_without(unstamped, due).values_list("pk", flat=True)[:SLICE])
        if not ids:
            return
        part, ids = ids[:size], ids[size:]
        batch = _batch(due.filter(pk__in=part), size)  # those of which it is still so
        unstamped |= {task.pk for task in batch} - _hand_over(batch, report, recheck=True)


def _without(unstamped: set[int], rows):
    """Changed or locked by another meanwhile: not twice in one round, or it would never end."""
    return rows.exclude(pk__in=unstamped) if unstamped else rows


def _batch_size(report: Report, limit: int | None) -> int:
    """So that a batch may be handed over as a whole and the limit still holds."""
    size = settings.TEAMDESK_BATCH_SIZE
    return size if limit is None else min(size, max(0, limit - report.handed_over))


def _batch(selection, size: int) -> Tasks:
    fields = ("kind", "status", "run", "attempt", "max_attempts", "run_at", "dispatched_at")
    return list(selection.with_is_due().only("pk", *fields)[:size]) if size else []


def _hand_over(batch: Tasks, report: Report, recheck: bool = False) -> set[int]:
    """Publish what needs it, then stamp. Returns the ids that were stamped."""
    if not batch:
        return set()
    view = queue.view_of(batch)
    judged: dict[Verdict, Tasks] = {verdict: [] for verdict in Verdict}
    for task in batch:
        judged[judge(task, view.records[task.pk], view)].append(task)
    to_add = judged[Verdict.ADD] + _charge(judged[Verdict.FAILED], view, report)
    added = _add(to_add)
    queue.keep(judged[Verdict.NOTHING])
    report.scanned += len(batch)
    if recheck:
        report.rechecked += len(batch)
        report.readded += added
    else:
        report.enqueued += added
    return _stamp(to_add + judged[Verdict.NOTHING])


def _charge(tasks: Tasks, view: View, report: Report) -> Tasks:
    """The queue said that these failed. Returns, as they are now, those that wait for another
    attempt; the others are FAILED or went on meanwhile."""
    waiting = []
    for task in tasks:
        record = view.records[task.pk]
        try:
            status = recovery.queue_said_failed(task, record.attempt, record.error)
        except DatabaseError as error:
            logger.warning("%s could not be charged for its failure: %s", task, describe(error))
            continue
        if status == TaskStatus.FAILED:
            report.failed += 1
            metrics.task_failed(task.kind)
            queue.forget([task.job_id])
        elif status == TaskStatus.WAITING:
            now = BackgroundTask.objects.waiting().with_is_due().filter(pk=task.pk, run=task.run)
            waiting += now
    return waiting


def _add(tasks: Tasks) -> int:
    """Hand the batch over; if it cannot be as a whole, row by row, so one bad row blocks nobody."""
    if not tasks:
        return 0
    try:
        return queue.add(tasks)
    except QueueUnreachable:
        raise
    except Exception:
        logger.exception("A batch could not be enqueued; trying its %d rows one by one", len(tasks))
    added = 0
    for task in tasks:
        try:
            added += queue.add([task])
        except QueueUnreachable:
            raise
        except Exception as error:
            logger.exception("%s could not be enqueued", task)
            _note(task, f"Could not be enqueued: {describe(error)}")
    return added


def _note(task: BackgroundTask, error: str) -> None:
    try:
        BackgroundTask.objects.waiting().filter(pk=task.pk, run=task.run).update(last_error=error)
    except DatabaseError as refusal:
        logger.warning("%s could not be told of it: %s", task, describe(refusal))


@repeating
def _stamp(batch: Tasks) -> set[int]:
    """Set ``dispatched_at`` where the row is still what was handed over. Locked in one order, past
    rows that others hold: bulk edits and stamps never wait for each other in a circle."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH handed_over AS (
                SELECT * FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS t (id, run, attempt)
            ), locked AS (
                SELECT task.id, task.dispatched_at AS checked_at
                FROM tasks_backgroundtask task JOIN handed_over USING (id, run, attempt)
                WHERE task.status = 'WAITING'
                ORDER BY task.id
                FOR UPDATE OF task SKIP LOCKED
            )
            UPDATE tasks_backgroundtask task SET dispatched_at = clock_timestamp()
            FROM locked WHERE task.id = locked.id
            RETURNING task.id, CASE WHEN locked.checked_at IS NULL THEN
                EXTRACT(EPOCH FROM clock_timestamp() - task.run_at) END
            """,
            [
                [task.pk for task in batch],
                [task.run for task in batch],
                [task.attempt for task in batch],
            ],
        )
        stamped = dict(cursor.fetchall())
    for lag in stamped.values():
        if lag is not None and lag >= 0:  # neither checked before nor of the future
            metrics.dispatch_seconds.observe(float(lag))
    return set(stamped)


# --- The other steps ------------------------------------------------------------------------------


def _promote(report: Report, limit: int | None) -> None:
    """Publish delayed jobs whose time has come, then remove them from the delayed set. The ledger
    says which of them still wait; the others are only removed."""
    deadline = time.monotonic() + PROMOTE_SECONDS
    while time.monotonic() < deadline:
        now = database_now()
        size = _batch_size(report, limit)
        jobs = queue.due_jobs(now, size) if size else []
        if not jobs:
            return
        ids = [int(job.partition(":")[0]) for job, _ in jobs]
        tasks = {
            task.job_id: task
            for task in BackgroundTask.objects.waiting().with_is_due().filter(pk__in=ids)
        }
        due = [tasks[job] for job, _ in jobs if job in tasks and tasks[job].is_due]
        report.promoted += _add(due)
        queue.drop_delayed(jobs)


def _recover(report: Report) -> None:
    recovered, failed = recovery.recover_expired_leases(RECOVER_SECONDS)
    report.recovered += recovered
    report.failed += failed


def _purge(purge, report: Report) -> None:
    report.purged += purge(PURGE_SECONDS)
