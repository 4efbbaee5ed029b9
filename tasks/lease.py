"""A lease: one worker's right to act for one execution of a task. The worker's arrows, all fenced.

Every write names the execution in its guard, so an execution that lost its lease (recovered,
cancelled) can no longer change anything, however late it wakes.
"""

import logging
import threading
import time
import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, connections, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from tasks import registry
from tasks.errors import describe, traceback_of, words_of
from tasks.models import AttemptOutcome, BackgroundTask, TaskAttempt, TaskStatus
from tasks.registry import Effect, PermanentFailure, RetryLater
from tasks.transactions import is_nobodys_failure, repeating

logger = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another got there first: the task was recovered or cancelled. The handler stops."""


class Lease:
    """Made by ``claim``. ``task`` is the row as claimed; ``execution_id`` is the fence."""

    def __init__(self, task: BackgroundTask):
        self.task = task
        self.kind = registry.kind(task.kind)
        self.execution_id = task.execution_id
        self._claimed = time.monotonic()
        self._lost = threading.Event()

    # WAITING → RUNNING

    @classmethod
    def claim(cls, task_id: int, run: int, worker: str = "") -> "Lease | None":
        """None if the task is not this run's, not waiting or not yet due: never an error."""
        task = _claim(task_id, run, worker)
        return cls(task) if task else None

    # RUNNING → RUNNING

    @repeating
    def renew(self) -> None:
        """Raises LeaseLost."""
        self._update(updated_at=Now())

    def progress(self, done: int, total: int | None = None) -> None:
        """Shows people how far it is, and renews. Refused inside a transaction, where the renewal
        would be invisible to the dispatcher until the commit.

        Raises LeaseLost.
        """
        if connection.in_atomic_block:
            raise transaction.TransactionManagementError(
                "Report progress outside transactions: inside one, nobody sees it or the renewal."
            )
        self._show(done, F("progress_total") if total is None else total)

    @repeating
    def _show(self, done, total) -> None:
        self._update(updated_at=Now(), progress_done=done, progress_total=total)

    @property
    def is_past_time_limit(self) -> bool:
        return time.monotonic() - self._claimed > self.kind.time_limit

    def check(self) -> None:
        """Raises LeaseLost if a renewal was refused meanwhile. Costs nothing."""
        if self._lost.is_set():
            raise LeaseLost(f"{self.task} was taken from execution {self.execution_id}")

    @contextmanager
    def kept_alive(self):
        """Renews from a side thread, on a connection of its own, never beyond the time limit."""
        done = threading.Event()

        def renew_until_done():
            times = int(self.kind.time_limit / settings.TEAMDESK_RENEWAL_SECONDS)
            try:
                for _ in range(times):
                    if done.wait(settings.TEAMDESK_RENEWAL_SECONDS):
                        return
                    try:
                        self.renew()
                    except LeaseLost:
                        return
                    except Exception as error:  # noqa: BLE001  the next renewal may succeed
                        logger.warning("%s was not renewed: %s", self.task, describe(error))
                        connection.close()
            finally:
                connections.close_all()

        thread = threading.Thread(target=renew_until_done, name=f"lease {self.task}", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            done.set()
            thread.join(timeout=settings.TEAMDESK_RENEWAL_SECONDS)

    # RUNNING → COMPLETED

    @repeating
    def complete(self, effect: Effect | None = None) -> None:
        """The handler's database effect and COMPLETED, in one transaction.

        The effect comes first: it locks the ticket, then come ledger rows, as in every verb.
        Raises LeaseLost, and then nothing of the effect exists.
        """
        if effect:
            effect()
        ttl = self.kind.result_ttl
        self._leave(
            AttemptOutcome.COMPLETED,
            status=TaskStatus.COMPLETED,
            finished_at=Now(),
            expires_at=Now() + ttl() if ttl else None,
            last_error="",
        )

    # RUNNING → WAITING, FAILED

    @repeating
    def fail_attempt(self, error: BaseException) -> TaskStatus:
        """What follows from ``error``: another attempt later, or FAILED. Returns the new status.

        A database that was out of reach, or a conflict with another transaction, costs no attempt
        as long as retries are free.

        Raises LeaseLost.
        """
        text, task = describe(error), self.task
        if is_nobodys_failure(error) and self._retries_are_free:
            self._wait_again(
                AttemptOutcome.RELEASED,
                text,
                run_at=Now() + self._soon,
                max_attempts=F("max_attempts") + 1,
            )
            return TaskStatus.WAITING
        if isinstance(error, PermanentFailure) or self._attempts_used_up(error):
            shown = words_of(error) if isinstance(error, PermanentFailure) else text
            self._leave(
                AttemptOutcome.FAILED,
                text,
                traceback_of(error),
                status=TaskStatus.FAILED,
                finished_at=Now(),
                last_error=shown,
            )
            return TaskStatus.FAILED
        if isinstance(error, RetryLater):
            self._wait_again(
                AttemptOutcome.RELEASED,
                text,
                run_at=error.at,
                max_attempts=F("max_attempts") + (1 if self._retries_are_free else 0),
            )
        else:
            wait = self.kind.backoff(task.attempt, task.max_attempts)
            self._wait_again(AttemptOutcome.FAILED, text, traceback_of(error), run_at=Now() + wait)
        return TaskStatus.WAITING

    @repeating
    def release(self, reason: str = "worker shut down") -> None:
        """Hand the task back on a clean shutdown: due now, and the attempt is given back.

        Raises LeaseLost.
        """
        self._wait_again(
            AttemptOutcome.RELEASED, reason, run_at=Now(), max_attempts=F("max_attempts") + 1
        )

    @property
    def _granted(self) -> int:
        return self.task.max_attempts - self.kind.max_attempts

    @property
    def _retries_are_free(self) -> bool:
        return self._granted < registry.FREE_RETRIES

    @property
    def _soon(self) -> timedelta:
        """Ever later: perhaps this very task is what takes the database down."""
        return timedelta(seconds=min(5 * 2 ** max(self._granted, 0), 600))

    def _attempts_used_up(self, error) -> bool:
        if isinstance(error, RetryLater) and self._retries_are_free:
            return False
        return self.task.attempt >= self.task.max_attempts

    def _wait_again(
        self, outcome, error: str, traceback: str = "", *, run_at: datetime, **changes
    ) -> None:
        self._leave(
            outcome,
            error,
            traceback,
            status=TaskStatus.WAITING,
            run_at=run_at,
            dispatched_at=None,
            last_error=error,
            **changes,
        )

    def _leave(self, outcome: AttemptOutcome, error: str = "", traceback: str = "", **changes):
        self._update(execution_id=None, updated_at=Now(), **changes)
        TaskAttempt.objects.filter(execution_id=self.execution_id).close(outcome, error, traceback)

    def _update(self, **changes) -> None:
        mine = BackgroundTask.objects.filter(
            pk=self.task.pk,
            run=self.task.run,
            status=TaskStatus.RUNNING,
            execution_id=self.execution_id,
        )
        if mine.update(**changes) == 0:
            self._lost.set()
            self.check()


@repeating
def _claim(task_id: int, run: int, worker: str) -> BackgroundTask | None:
    execution_id = uuid.uuid4()
    claimed = BackgroundTask.objects.filter(
        pk=task_id, run=run, status=TaskStatus.WAITING, run_at__lte=Now()
    ).update(
        status=TaskStatus.RUNNING,
        execution_id=execution_id,
        attempt=F("attempt") + 1,
        updated_at=Now(),
        started_at=Coalesce("started_at", Now()),
        progress_done=0,
        progress_total=None,
    )
    if not claimed:
        return None
    task = BackgroundTask.objects.get(pk=task_id)
    TaskAttempt.objects.create(
        task=task, run=run, attempt=task.attempt, execution_id=execution_id, worker=worker[:200]
    )
    return task
