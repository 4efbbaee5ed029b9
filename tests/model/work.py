"""What workers do: take messages, deliver them twice and late, and run what is in them."""

import uuid
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tasks import worker
from tasks.clock import database_now
from tasks.lease import Lease
from tasks.registry import PermanentFailure, RetryLater
from tests.model import ageing, kinds, world
from tests.model.base import Base, Execution
from tests.model.expected import Expected, holds
from tests.model.world import Message

LATER_SECONDS = 5_000

NOTHING = Message("", "short", [], 0)

which = st.integers(0, 9)  # counts from the newest
often = st.sampled_from([True, True, False])
ends_of_a_run = st.sampled_from(
    ["complete", "complete", "complete", "fail", "fail for good", "retry later", "effect fails"]
)


class Work(Base):
    # Messages

    @precondition(lambda self: "dying workers" in self.troubles)
    @rule(queue=st.sampled_from(["short", "long"]))
    def a_worker_dies_with_its_messages(self, queue):
        """They are off their list, and come again from somewhere, or never."""
        while self._take(queue):
            self.say(f"a message of {queue} is taken off its list")

    def _take(self, *queues: str) -> bool:
        message = next((found for name in queues if (found := world.take(name, self.seen))), None)
        if message:
            self.messages.append(message)
        return bool(message)

    def _deliver(self, number: int, fresh: bool) -> tuple[Message, int] | None:
        """The oldest message of the lists, or one that was taken already; and when it was published
        as things look now."""
        taken = fresh and self._take("short", "long")
        if not self.messages:
            return None
        message = self.messages[-1 if taken else -1 - number % len(self.messages)]
        return message, message.published_at - (self.now - message.seen_at) * 1_000_000

    # A whole run of a message: of one job, or of several that travelled together

    @rule(
        number=which,
        fresh=often,
        ends=st.lists(ends_of_a_run, min_size=3, max_size=3),
        meanwhile=st.sampled_from(["", "", "", "", "cancelled", "recovered", "taken over"]),
        at=st.integers(0, 2),
        whom=st.integers(0, 2),
    )
    def run(self, number, fresh, ends, meanwhile, at, whom):
        """``meanwhile``, while job number ``at`` is handled, that happens to number ``whom``."""
        message, published_at = self._deliver(number, fresh) or (NOTHING, 0)
        jobs = [tuple(map(int, job.split(":"))) for job in message.jobs]
        claimed = [
            task
            for pk, run in sorted(jobs)
            if (task := self.tasks.get(pk)) and task.may_be_claimed(run, self.now)
        ]
        self.say(f"run {' '.join(message.jobs) or 'nothing'}, {ends} {meanwhile} {at} {whom}")
        if not jobs:
            return
        victim = claimed[whom % len(claimed)] if claimed and meanwhile else None
        executions: dict[int, uuid.UUID] = {}
        told: dict[int, str] = {}
        end_of = dict(zip((task.pk for task in claimed), ends, strict=False))

        def play(row, lease):
            if not executions:  # the first one: the claim has taken all that it may
                self._claimed(claimed, executions)
            task = self.tasks[row.pk]
            right = executions.get(row.pk) == lease.execution_id
            holds("a claim is guarded", right, f"{row} was claimed")
            if victim and task is claimed[at % len(claimed)]:
                self._meanwhile(victim, meanwhile)
            return self._outcome(task, lease, end_of[row.pk], told)

        kinds.Stage.play = play
        statuses = worker.run_jobs(jobs, message.uuid, published_at, "ann")
        holds("what may be claimed is", bool(executions) == bool(claimed), f"{jobs}: {statuses}")
        for task in claimed:
            if task.is_held_by(executions[task.pk]):
                self._move(task, {"effect fails": "fail"}.get(end_of[task.pk], "complete"))
                told[task.pk] = task.status
        expected = [told.get(pk) for pk, _ in jobs]
        holds("a run tells its status", statuses == expected, f"{jobs}: {statuses}, not {expected}")

    def _claimed(self, tasks: list[Expected], executions: dict[int, uuid.UUID]) -> None:
        rows = world.rows()
        for task in tasks:
            execution = rows[task.pk]["execution_id"]
            holds("what may be claimed is", execution, f"{task} was not")
            task.claim(execution, self.now)
            executions[task.pk] = execution

    def _meanwhile(self, task: Expected, what: str) -> None:
        """To a task whose handler has yet to begin, is at work, or has ended; or that has ended."""
        if what == "cancelled":
            world.cancel(task.pk)
            if task.is_live:
                task.cancel(self.now)
            return
        self.pass_time(6 * ageing.UNIT)
        world.recover(task.pk)
        if task.has_expired_lease(self.now):
            task.recover(self.now)
        if what == "taken over" and task.may_be_claimed(task.run, self.now):
            lease = Lease.claim(task.pk, task.run, "bob")
            task.claim(lease.execution_id, self.now)
            stray = Message(str(uuid.uuid4()), task.kind.queue, [task.job], 0)
            self.executions.append(Execution(lease, task, stray))

    def _outcome(self, task: Expected, lease: Lease, end: str, told: dict[int, str]):
        """What the handler comes to. A failure moves the task at once, an effect at the end."""
        if end in ("complete", "effect fails"):
            return self._effect(task, lease, end)
        if task.is_held_by(lease.execution_id):
            self._move(task, end)
            told[task.pk] = task.status
        raise self._error(end)

    def _error(self, end: str) -> Exception:
        if end == "fail for good":
            return PermanentFailure("There is no such address.")
        if end == "retry later":
            return RetryLater(database_now() + timedelta(seconds=LATER_SECONDS))
        return ConnectionError("the printer is on fire")

    def _effect(self, task: Expected, lease: Lease, end: str = "complete"):
        def effect():
            kinds.write_effect(task.pk, lease.task.run, lease.execution_id)
            if end == "effect fails":
                raise ValueError("the effect went wrong after its write")

        return effect

    def _move(self, task: Expected, end: str) -> None:
        if end == "complete":
            task.complete(self.now)
        elif end == "fail":
            task.fail(self.now)
        elif end == "fail for good":
            task.fail_for_good(self.now)
        elif end == "retry later":
            task.retry_later(self.now + LATER_SECONDS, self.now)
        elif end == "release":
            task.release(self.now)
