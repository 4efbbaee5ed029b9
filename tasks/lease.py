"""A lease: one worker's right to act for one execution of a task. The worker's arrows, all fenced.

Every write names the execution in its guard, so an execution that lost its lease (recovered,
cancelled) can no longer change anything, however late it wakes.
"""

import threading
import time
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from tasks import metrics, registry
from tasks.claim import claim
from tasks.completion import record_completed
from tasks.errors import describe, traceback_of, words_of
from tasks.models import AttemptOutcome, BackgroundTask, TaskAttempt, TaskStatus
from tasks.registry import Effect, PermanentFailure, RetryLater
from tasks.transactions import is_nobodys_failure, repeating


class LeaseLost(Exception):
    """Another got there first: the task was recovered or cancelled. The handler stops."""


class Lease:
    """Made by ``claim``. ``task`` is the row as claimed; ``execution_id`` is the fence."""

    def __init__(self, task: BackgroundTask, begins_within: float = 0):
        """``begins_within``: seconds until its handler begins at the latest, see ``begin``."""
        self.task = task
        self.kind = registry.kind(task.kind)
        self.execution_id = task.execution_id
        self._lost = threading.Event()
        self._began_at = time.monotonic()
        self._renewals_left = self._renewals_within(begins_within + self.kind.time_limit)

    def __str__(self):
        return f"{self.task} attempt {self.task.attempt}"

    # WAITING → RUNNING

    @classmethod
    def claim(cls, task_id: int, run: int, worker: str = "") -> "Lease | None":
        """None if the task is not this run's, not waiting or not yet due: never an error."""
        claimed = claim([(task_id, run)], worker)
        return cls(claimed[0]) if claimed else None

    def begin(self) -> None:
        """Its handler begins now, and its time limit counts from now on.

        Raises LeaseLost if it is known to be lost.
        """
        self._began_at = time.monotonic()
        self._renewals_left = self._renewals_within(self.kind.time_limit)
        self.check()

    # RUNNING → RUNNING

    @repeating(in_transaction=False)
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

    @repeating(in_transaction=False)
    def _show(self, done, total) -> None:
        self._update(updated_at=Now(), progress_done=done, progress_total=total)

    @property
    def seconds(self) -> float:
        """Since its handler began."""
        return time.monotonic() - self._began_at

    @property
    def is_past_time_limit(self) -> bool:
        return self.seconds > self.kind.time_limit

    def check(self) -> None:
        """Raises LeaseLost if a renewal was refused meanwhile. Costs nothing."""
        if self._lost.is_set():
            raise LeaseLost(f"{self.task} was taken from execution {self.execution_id}")

    def lose(self) -> None:
        """Another took it, a write was refused; ``check`` says so from now on."""
        metrics.write_fenced_out(self.task.kind)
        self._lost.set()

    # Renewal from the side, see tasks/renewal.py

    @property
    def may_be_renewed(self) -> bool:
        return self._renewals_left > 0 and not self._lost.is_set()

    def counted_renewal(self) -> bool:
        """May it be renewed? Then that is counted: its handler may run no longer than its limit."""
        allowed = self.may_be_renewed
        self._renewals_left -= allowed
        return allowed

    def renew_if_held(self) -> None:
        with suppress(LeaseLost):
            self.renew()

    @staticmethod
    def _renewals_within(seconds: float) -> int:
        return int(seconds / settings.TEAMDESK_RENEWAL_SECONDS)

    # RUNNING → COMPLETED

    @repeating(lock_timeouts=True)
    def complete(self, effect: Effect | None = None) -> None:
        """The handler's database effect and COMPLETED, in one transaction.

        The effect comes first: it locks the ticket, then come ledger rows, as in every verb.
        Raises LeaseLost, and then nothing of the effect exists.
        """
        if effect:
            effect()
        if record_completed([self]) == 0:
            self.lose()
            self.check()

    # RUNNING → WAITING, FAILED

    @repeating(lock_timeouts=True)
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

    @repeating(lock_timeouts=True)
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
            self.lose()
            self.check()
