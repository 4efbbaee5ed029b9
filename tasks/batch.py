"""A batch: the tasks of one message that a worker claimed, each handled, failed or finished alone
unless all goes well."""

import logging
import time
from collections.abc import Callable

from billiard.common import terminate_handler_fired
from django.db import DatabaseError, InterfaceError

from tasks import correlation, metrics, registry
from tasks.completion import NotTogether, complete_together
from tasks.errors import describe
from tasks.lease import Lease, LeaseLost
from tasks.models import TaskStatus
from tasks.registry import Effect
from tasks.renewal import kept_alive

logger = logging.getLogger(__name__)

_GROUP_AFTER_SECONDS = 0.5  # a finished handler's effect waits no longer for its neighbours'

_HOW = {  # an attempt ended, for those who count
    TaskStatus.COMPLETED: "completed",
    TaskStatus.WAITING: "retried",
    TaskStatus.FAILED: "failed",
}


class Batch:
    """Runs the handlers one after another and commits their effects together where that works.

    Whatever goes wrong with one task is that task's: its attempt fails, its lease is lost, and its
    neighbours go on. If a group of effects cannot be committed together, for whatever reason,
    nothing of it exists and each is committed alone.
    """

    def __init__(self, leases: list[Lease]):
        """``leases`` of one kind."""
        self.statuses: dict[str, TaskStatus] = {}  # of the jobs whose attempt ended here
        self._held = list(leases)  # those that did not end yet
        self._finished: list[tuple[Lease, Effect | None]] = []  # handled, not yet COMPLETED
        self._current: Lease | None = None
        self._error: Exception | None = None

    def run(self, when_it_takes_time: Callable[[], None] | None = None) -> dict[str, TaskStatus]:
        """To the end of every attempt. Returns the statuses by job; what was taken from its
        execution has none.

        Args:
            when_it_takes_time: is called from the side, after a moment.

        Raises DatabaseError or InterfaceError, in the end, if an attempt's outcome could not be
        recorded; and SystemExit when the pool ends this process, with all leases handed back.
        """
        begun = time.monotonic()
        grouped = begun
        try:
            with kept_alive(self._held, when_it_takes_time):
                for lease in list(self._held):
                    if time.monotonic() - begun > registry.BATCH_SECONDS:
                        break
                    self._handle(lease)
                    if time.monotonic() - grouped > _GROUP_AFTER_SECONDS:
                        self._complete()
                        grouped = time.monotonic()
                self._complete()
            self._release("its batch took long")
        except SystemExit:
            self._leave()
            raise
        if self._error:
            raise self._error
        return self.statuses

    def _handle(self, lease: Lease) -> None:
        def handle():
            lease.begin()
            effect = lease.kind.handler(lease.task, lease)
            lease.check()
            self._finished.append((lease, effect))

        self._attempt(lease, handle)

    def _complete(self) -> None:
        """COMPLETED for what is handled: together, or else one by one."""
        finished, self._finished = self._finished, []
        if len(finished) > 1 and self._is_completed_together(finished):
            for lease, _ in finished:
                self._end(lease, TaskStatus.COMPLETED)
            return
        for lease, effect in finished:

            def complete(lease=lease, effect=effect):
                lease.complete(effect)
                self._end(lease, TaskStatus.COMPLETED)

            self._attempt(lease, complete)

    def _is_completed_together(self, finished) -> bool:
        self._current = finished[-1][0]
        try:
            complete_together(finished)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # each is tried alone, and then speaks for itself
            if isinstance(error, SystemExit) and self._is_leaving:
                raise
            log = logger.info if isinstance(error, NotTogether) else logger.warning
            log("%d tasks are finished one by one: %s", len(finished), describe(error))
            return False
        return True

    def _attempt(self, lease: Lease, work: Callable[[], None]) -> None:
        """Do a part of this task's attempt; what goes wrong ends this attempt and no other's."""
        self._current = lease
        with correlation.of_task(lease.task):
            self._attempt_or_fail(lease, work)

    def _attempt_or_fail(self, lease: Lease, work: Callable[[], None]) -> None:
        try:
            try:
                work()
            except (LeaseLost, KeyboardInterrupt):  # a person's, at a console: pools are deaf to it
                raise
            except BaseException as error:  # whatever it raises is the attempt's result
                if isinstance(error, SystemExit) and self._is_leaving:
                    raise
                logger.warning("%s failed: %s", lease, describe(error))
                self._end(lease, lease.fail_attempt(error))
        except LeaseLost as lost:
            logger.warning("%s", lost)
            metrics.attempt_ended(lease.kind.name, "lost", lease.seconds)
            self._held.remove(lease)
        except (DatabaseError, InterfaceError) as error:
            # The attempt has no outcome: it is recovered when its lease runs out.
            logger.warning("%s could not be ended: %s", lease, describe(error))
            self._held.remove(lease)
            self._error = self._error or error

    def _end(self, lease: Lease, status: TaskStatus, is_released: bool = False) -> None:
        how = "released" if is_released else _HOW[status]
        metrics.attempt_ended(lease.kind.name, how, lease.seconds)
        self.statuses[lease.task.job_id] = status
        self._held.remove(lease)

    @property
    def _is_leaving(self) -> bool:
        """The pool ends its process: past the hard time limit, or when the grace time of a shutdown
        is over. Anyone else's SystemExit is a failure like any other."""
        return self._current.is_past_time_limit or terminate_handler_fired()

    def _leave(self) -> None:
        """The task that hung fails its attempt; the others did nothing wrong and are released."""
        hung = self._current
        if hung in self._held and hung.is_past_time_limit:
            limit = f"It ran longer than its time limit of {hung.kind.time_limit:g} s."
            self._attempt(hung, lambda: self._end(hung, hung.fail_attempt(TimeoutError(limit))))
        self._release("worker shut down")

    def _release(self, reason: str) -> None:
        for lease in list(self._held):

            def release(lease=lease):
                lease.release(reason)
                self._end(lease, TaskStatus.WAITING, is_released=True)

            self._attempt(lease, release)
