"""What a Celery worker runs: claim, handler, finish. The one Celery task of TeamDesk."""

import contextlib
import logging

from billiard.common import terminate_handler_fired
from celery import shared_task, signals
from django.db import close_old_connections, connections
from django.db.backends.signals import connection_created

from tasks import patience, queue, registry
from tasks.errors import describe
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.transactions import LOST_OR_IN_CONFLICT, is_lost_database, set_session_limits

logger = logging.getLogger(__name__)


@shared_task(name=queue.EXECUTE, bind=True, ignore_result=True)
def execute(self, task_id: int, run: int, published_at: int = 0) -> None:
    close_old_connections()
    run_job(task_id, run, self.request.id or "", published_at, self.request.hostname or "")


def run_job(
    task_id: int, run: int, message: str = "", published_at: int = 0, worker: str = ""
) -> TaskStatus | None:
    """Run one job to the end of its attempt. Returns the status it left the task in, or None when
    the claim was refused or the lease was lost: both are normal life, not errors."""
    job = f"{task_id}:{run}"
    try:
        lease = _claim(task_id, run, message, published_at, worker)
    except LOST_OR_IN_CONFLICT as error:
        # The database was out of reach, or someone holds the row for long. No attempt began and
        # none is charged: the queue is done with this message, and the dispatcher sends another.
        logger.warning("Task %s could not be claimed: %s", job, describe(error))
        queue.mark_ended(job, message)
        return None
    if lease is None:
        return None
    queue.mark_claimed(job, message, lease.task.attempt)
    try:
        return _run(lease)
    except LeaseLost as lost:
        logger.warning("%s", lost)
        return None
    finally:
        queue.mark_ended(job, message)


def _claim(task_id: int, run: int, message: str, published_at: int, worker: str) -> Lease | None:
    job = f"{task_id}:{run}"
    task = BackgroundTask.objects.filter(pk=task_id).only("kind").first()
    if task is None:
        logger.info(
            "Task %s does not exist: its transaction was rolled back or it was deleted", job
        )
        queue.mark_ended(job, message)
        return None
    queue.mark_started(job, message, registry.kind(task.kind).queue, published_at)
    lease = Lease.claim(task_id, run, worker)
    if lease is None:
        _refused(task_id, run, message)
    return lease


def _run(lease: Lease) -> TaskStatus:
    try:
        with lease.kept_alive():
            effect = lease.kind.handler(lease.task, lease)
            lease.check()
            lease.complete(effect)
        return TaskStatus.COMPLETED
    except LeaseLost:
        raise
    except SystemExit as leaving:
        # The pool ends its process: past the hard time limit, or when the grace time of a shutdown
        # is over. Anyone else's SystemExit is a failure like any other.
        if not (lease.is_past_time_limit or terminate_handler_fired()):
            return lease.fail_attempt(leaving)
        with contextlib.suppress(LeaseLost):  # taken already; the process ends all the same
            if lease.is_past_time_limit:
                limit = f"It ran longer than its time limit of {lease.kind.time_limit:g} s."
                lease.fail_attempt(TimeoutError(limit))
            else:
                lease.release()
        raise
    except KeyboardInterrupt:
        raise  # of a person at a console; a pool's processes are deaf to it
    except BaseException as error:  # noqa: BLE001  whatever a handler raises is its attempt's result
        logger.warning("%s attempt %d failed: %s", lease.task, lease.task.attempt, describe(error))
        return lease.fail_attempt(error)


def _refused(task_id: int, run: int, message: str) -> None:
    """Set the record right after a refused claim; the ledger says why it was refused."""
    task = BackgroundTask.objects.with_is_due().filter(pk=task_id, run=run).first()
    if task and task.status == TaskStatus.WAITING and not task.is_due:
        queue.mark_delayed(task)
    elif task is None or task.is_terminal:
        queue.mark_ended(f"{task_id}:{run}", message)


# --- The worker's processes -----------------------------------------------------------------------


@signals.worker_process_init.connect
def _prepare_process(**kwargs):
    # The parent's connection must not be shared, and nothing here may wait for ever.
    connections.close_all()
    connection_created.connect(set_session_limits)
    patience.wait_as_long_as_statements_may_take()


@signals.task_failure.connect
def _record_failure(sender=None, task_id=None, exception=None, args=None, kwargs=None, **extra):
    """Celery gave up on a message: a killed process. A fact for the dispatcher, which decides. A
    database that was lost is no failure of the job: its lease runs out, and it goes on."""
    if is_lost_database(exception):
        return
    if getattr(sender, "name", "") == queue.EXECUTE and kwargs and "task_id" in kwargs:
        job = f"{kwargs['task_id']}:{kwargs['run']}"
        queue.mark_failed(job, task_id or "", describe(exception))
