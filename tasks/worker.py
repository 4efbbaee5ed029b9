"""What a Celery worker runs: claim, handler, finish. The one Celery task of TeamDesk."""

import gc
import logging
from collections.abc import Sequence

from celery import shared_task, signals
from django.db import DEFAULT_DB_ALIAS, close_old_connections, connections
from django.db.backends.signals import connection_created

from tasks import correlation, metrics, patience, queue, registry
from tasks.batch import Batch
from tasks.claim import claim
from tasks.errors import describe
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tasks.transactions import LOST_OR_IN_CONFLICT, is_lost_database, set_session_limits

logger = logging.getLogger(__name__)

Job = tuple[int, int]  # task id, run


@shared_task(name=queue.EXECUTE, bind=True, ignore_result=True)
def execute(self, published_at: int = 0, **jobs) -> None:
    close_old_connections()
    run_jobs(queue.jobs_of(jobs), self.request.id or "", published_at, self.request.hostname or "")


def run_job(
    task_id: int, run: int, message: str = "", published_at: int = 0, worker: str = ""
) -> TaskStatus | None:
    """``run_jobs`` for one."""
    (status,) = run_jobs([(task_id, run)], message, published_at, worker)
    return status


def run_jobs(
    jobs: Sequence[Job], message: str = "", published_at: int = 0, worker: str = ""
) -> list[TaskStatus | None]:
    """Run the jobs of a message to the end of their attempts.

    Returns for each the status it was left in, or None when its claim was refused or its lease was
    lost: both are normal life, not errors.
    """
    jobs = list(dict.fromkeys(jobs))  # twice in a message is once
    with correlation.of_jobs(jobs):
        return _run_jobs(jobs, message, published_at, worker)


def _run_jobs(
    jobs: list[Job], message: str, published_at: int, worker: str
) -> list[TaskStatus | None]:
    names = [_name(job) for job in jobs]
    try:
        # Several: past rows that others hold, so that nobody waits for a neighbour's row.
        tasks = claim(jobs, worker, past_held_rows=len(jobs) > 1)
    except LOST_OR_IN_CONFLICT as error:
        # The database was out of reach, or someone holds the row for long. No attempt began and
        # none is charged: the queue is done with this message, and the dispatcher sends another.
        logger.warning("Tasks %s could not be claimed: %s", " ".join(names), describe(error))
        metrics.claim_refused("unreachable", len(jobs))
        queue.mark_ended(names, message)
        return [None] * len(jobs)
    for task in tasks:
        metrics.task_claimed(task.kind, (task.updated_at - task.run_at).total_seconds())
    claimed = {(task.pk, task.run) for task in tasks}
    held = _refused([job for job in jobs if job not in claimed], message, published_at)
    statuses: dict[str, TaskStatus | None] = dict.fromkeys(names)
    if tasks:
        statuses |= _run(tasks, message, published_at)
    # At last those whose rows others held: each alone, waiting for its own row.
    for job in held if len(jobs) > 1 else ():
        statuses[_name(job)] = run_job(*job, message, published_at, worker)
    return list(statuses.values())


def _run(tasks: list[BackgroundTask], message: str, published_at: int) -> dict[str, TaskStatus]:
    if len(tasks) == 1:
        correlation.claimed(tasks[0])
    kind = registry.kind(tasks[0].kind)
    begins_within = registry.BATCH_SECONDS if len(tasks) > 1 else 0
    leases = [Lease(task, begins_within) for task in tasks]
    attempts = {task.job_id: task.attempt for task in tasks}
    marks = (attempts, message, kind.queue, published_at)
    try:
        return Batch(leases).run(when_it_takes_time=lambda: queue.mark_claimed(*marks))
    finally:
        queue.mark_ended(*marks)


def _refused(jobs: list[Job], message: str, published_at: int) -> list[Job]:
    """Set the records right after refused claims; the ledger says why they were refused. Returns
    those that are waiting and due: another holds their rows, or did a moment ago."""
    if not jobs:
        return []
    try:
        rows = BackgroundTask.objects.with_is_due().in_bulk([task_id for task_id, _ in jobs])
    except LOST_OR_IN_CONFLICT as error:
        logger.warning("Why %s were not claimed is unknown: %s", jobs, describe(error))
        queue.mark_ended([_name(job) for job in jobs], message)
        return []
    ended, started, held = [], [], []
    for task_id, run in jobs:
        task = rows.get(task_id)
        if task is None:
            logger.info(
                "Task %s:%s does not exist: its transaction was rolled back or it was deleted",
                task_id,
                run,
            )
        if task is None or task.run != run or task.is_terminal:
            ended.append((task_id, run))
            metrics.claim_refused("duplicate" if task else "gone")
        elif task.status != TaskStatus.WAITING:
            started.append((task_id, run))
            metrics.claim_refused("duplicate")
        elif not task.is_due:
            queue.mark_delayed(task, message)
            metrics.claim_refused("early")
        else:
            held.append((task_id, run))
    for task in list(rows.values())[:1]:
        queue.mark_started(
            [_name(job) for job in started], message, registry.kind(task.kind).queue, published_at
        )
    if ended:
        queue.mark_ended([_name(job) for job in ended], message)
    return held


def _name(job: Job) -> str:
    return f"{job[0]}:{job[1]}"


# --- The worker's processes -----------------------------------------------------------------------


@signals.worker_before_create_process.connect
def _keep_what_is_loaded(**kwargs):
    """Out of the garbage collections of the process that is forked now. Each would walk over all
    that Django and the handlers loaded, half of the time it takes to read a large COPY, and would
    write into the memory it shares with its parent."""
    gc.collect()
    gc.freeze()


@signals.worker_process_init.connect
def _prepare_process(**kwargs):
    # The parent's connection must not be shared, and nothing here may wait for ever.
    connections.close_all()
    connection_created.connect(set_session_limits)
    patience.wait_as_long_as_statements_may_take()
    # The claim comes first and is repeated on a new connection if this one was lost; asking before
    # each message would be a round trip for nothing.
    connections.settings[DEFAULT_DB_ALIAS]["CONN_HEALTH_CHECKS"] = False


@signals.task_prerun.connect
def _begin_lines(sender=None, kwargs=None, **extra):
    """Until Celery has said of the message what it wants to say."""
    if getattr(sender, "name", "") == queue.EXECUTE:
        correlation.begin(queue.jobs_of(kwargs or {}))


@signals.task_postrun.connect
def _end_lines(**kwargs):
    correlation.end()


@signals.task_failure.connect
def _record_failure(sender=None, task_id=None, exception=None, args=None, kwargs=None, **extra):
    """Celery gave up on a message: a killed process. A fact for the dispatcher, which decides. A
    database that was lost is no failure of the job: its lease runs out, and it goes on."""
    if is_lost_database(exception):
        return
    if getattr(sender, "name", "") == queue.EXECUTE and kwargs:
        jobs = [_name(job) for job in queue.jobs_of(kwargs)]
        queue.mark_failed(jobs, task_id or "", describe(exception))
