"""A run in steps, between which anything may happen; also to an execution that lost its lease."""

import uuid
from unittest.mock import patch

from django.db import DatabaseError
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from exports.models import Export, ExportChunk
from tasks import lease as leases
from tasks import queue, worker
from tasks.claim import claim
from tasks.completion import NotTogether, complete_together
from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask
from tests.model import kinds, world
from tests.model.base import Execution
from tests.model.expected import Broken, holds
from tests.model.work import NOTHING, Work, often, which
from tests.model.world import Message

STALE = "a stale execution changes nothing"
ATOMIC = "an effect commits with COMPLETED or not at all"

ends = st.sampled_from(["complete", "complete", "fail", "fail for good", "retry later", "release"])


class Steps(Work):
    @rule(number=which, fresh=often)
    def claim(self, number, fresh):
        message, published_at = self._deliver(number, fresh) or (NOTHING, 0)
        if not message.jobs:
            return
        jobs = [tuple(map(int, job.split(":"))) for job in message.jobs]
        claimed = self._claim(jobs, message)
        attempts = {lease.task.job_id: lease.task.attempt for lease in claimed}
        if attempts:
            queue.mark_claimed(attempts, message.uuid, message.queue, published_at)
        refused = [job for job in jobs if f"{job[0]}:{job[1]}" not in attempts]
        worker._refused(refused, message.uuid, published_at)

    @precondition(lambda self: self.tasks)
    @rule(number=which, other_run=st.sampled_from([0, 0, 0, -1, 1]))
    def claim_without_a_message(self, number, other_run):
        """As if a message came out of nowhere: whatever Redis says, the ledger decides."""
        task = list(self.tasks.values())[-1 - number % len(self.tasks)]
        run = max(task.run + other_run, 0)
        stray = Message(str(uuid.uuid4()), task.kind.queue, [f"{task.pk}:{run}"], 0)
        self._claim([(task.pk, run)], stray)

    def _claim(self, jobs: list[tuple[int, int]], message: Message) -> list[Lease]:
        may = {
            pk
            for pk, run in jobs
            if (task := self.tasks.get(pk)) and task.may_be_claimed(run, self.now)
        }
        claimed = [Lease(row) for row in claim(jobs, "ann")]
        got = {lease.task.pk for lease in claimed}
        self.say(f"claim {jobs}: {sorted(got) or 'refused'}")
        holds("a claim is guarded", got <= may, f"{jobs}: {got}, not {may}")
        holds("what may be claimed is", may <= got, f"{jobs}: {got}, not {may}")
        for lease in claimed:
            task = self.tasks[lease.task.pk]
            task.claim(lease.execution_id, self.now)
            self.executions.append(Execution(lease, task, message))
        return claimed

    def _execution(self, number: int) -> Execution:
        return self.executions[-1 - number % len(self.executions)]

    def _act(self, execution: Execution, what: str, work) -> bool:
        """Whether it was allowed to; if not, it must be told so and nothing may change."""
        self.say(f"{execution}: {what}{'' if execution.holds else ', too late'}")
        if execution.holds:
            try:
                work()
            except LeaseLost as error:
                raise Broken("a holder may act", f"{execution}: {what}: {error}") from error
            return True
        with self.unchanged(STALE, f"{execution}: {what}"):
            try:
                work()
            except LeaseLost:
                return False
        raise Broken("a stale execution is told so", f"{execution}: {what}")

    @precondition(lambda self: self.executions)
    @rule(number=which, done=st.integers(0, 5), total=st.sampled_from([None, 5]))
    def renew(self, number, done, total):
        execution = self._execution(number)
        lease, task = execution.lease, execution.task
        if not done:
            if self._act(execution, "renew", lease.renew):
                task.renew(self.now)
        elif self._act(execution, "progress", lambda: lease.progress(done, total)):
            task.renew(self.now)
            task.progress = (done, task.progress[1] if total is None else total)

    @precondition(lambda self: self.executions)
    @rule(number=which, end=ends, tells_the_queue=st.booleans())
    def finish(self, number, end, tells_the_queue):
        execution = self._execution(number)
        lease = execution.lease
        verbs = {
            "complete": lambda: lease.complete(self._effect(execution.task, lease)),
            "release": lease.release,
        }
        verb = verbs.get(end) or (lambda: lease.fail_attempt(self._error(end)))
        if self._act(execution, end, verb):
            self._move(execution.task, end)
        if tells_the_queue:
            queue.mark_ended(f"{execution.task.pk}:{lease.task.run}", execution.message.uuid)

    @precondition(lambda self: any(execution.holds for execution in self.executions))
    @rule(number=which, in_the_effect=st.booleans())
    def finish_without_luck(self, number, in_the_effect):
        """The effect raises after its write, or the database does before the commit."""
        holders = [execution for execution in self.executions if execution.holds]
        execution = holders[-1 - number % len(holders)]
        self.say(f"{execution}: complete, which fails")
        lease, record_completed = execution.lease, leases.record_completed

        def cut(*args):
            record_completed(*args)
            raise DatabaseError("cut")

        with self.unchanged(ATOMIC, f"{execution}"):
            try:
                if in_the_effect:
                    lease.complete(self._effect(execution.task, lease, "effect fails"))
                else:
                    with patch.object(leases, "record_completed", cut):
                        lease.complete(self._effect(execution.task, lease))
            except (ValueError, DatabaseError):
                return
        raise Broken("a failed finish is raised", f"{execution}")

    @precondition(lambda self: any(len(each.message.jobs) > 1 for each in self.executions))
    @rule(number=which)
    def finish_together(self, number):
        """A batch's effects and ends in one transaction: all of them, or none."""
        batches = [each.message for each in self.executions if len(each.message.jobs) > 1]
        message = batches[-1 - number % len(batches)]
        batch = [each for each in self.executions if each.message is message]
        self._complete_together(batch)

    @precondition(lambda self: len(self._many_to_claim()) > 1)
    @rule(loses=st.booleans())
    def finish_many(self, loses):
        """A batch from its claim to its end, of which one may be cancelled in between."""
        tasks = self._many_to_claim()[:3]
        jobs = [(task.pk, task.run) for task in tasks]
        names = [f"{pk}:{run}" for pk, run in jobs]
        message = Message(str(uuid.uuid4()), kinds.MANY.queue, names, 0)
        self._claim(jobs, message)
        if loses:
            self.say(f"cancel {tasks[0]}")
            BackgroundTask.objects.filter(pk=tasks[0].pk).cancel(reason="The model says so.")
            tasks[0].cancel(self.now)
        self._complete_together([each for each in self.executions if each.message is message])

    def _many_to_claim(self):
        return [
            task
            for task in self.tasks.values()
            if task.kind is kinds.MANY and task.may_be_claimed(task.run, self.now)
        ]

    def _complete_together(self, batch: list[Execution]) -> None:
        self.say(f"{', '.join(map(str, batch))}: complete together")
        finished = [(each.lease, self._effect(each.task, each.lease)) for each in batch]
        before = world.everything()
        try:
            complete_together(finished)
        except NotTogether:
            holds(ATOMIC, world.everything() == before, f"{batch}")
            return  # one of them lost its lease, or this machine is slow
        for execution in batch:
            holds(STALE, execution.holds, f"{execution} was completed among others")
            execution.task.complete(self.now)

    @precondition(lambda self: self.executions and "dying workers" in self.troubles)
    @rule(number=which)
    def is_reported_dead(self, number):
        """Celery says that the process died: true or not, it goes into the record only."""
        execution = self._execution(number)
        self.say(f"{execution} is reported dead")
        job = f"{execution.task.pk}:{execution.lease.task.run}"
        queue.mark_failed(job, execution.message.uuid, "signal 9")

    @precondition(lambda self: any(e.task.kind is kinds.RESULT for e in self.executions))
    @rule(number=which)
    def store_a_chunk(self, number):
        """Chunks are committed as the work goes, under the execution; the purge knows whose."""
        writers = [each for each in self.executions if each.task.kind is kinds.RESULT]
        execution = writers[-1 - number % len(writers)]
        if execution.task.pk in self.tasks and (execution.task.pk, execution.id) not in self.chunks:
            self.say(f"{execution} stores a chunk")
            export = Export(pk=execution.task.pk)
            ExportChunk.objects.store(export, execution.id, 0, b"id\r\n")
            self.chunks.add((execution.task.pk, execution.id))
