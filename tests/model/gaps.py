"""What the dispatcher does, step by step: between reading and doing, anything may happen."""

import uuid
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tasks import dispatcher, recovery, registry
from tasks.models import BackgroundTask
from tests.model import world
from tests.model.expected import BATCH_SIZE, PRUNE_SECONDS, WAITING, Expected, holds, verdict
from tests.model.rounds import Rounds
from tests.model.steps import Steps
from tests.model.world import Message


class Gaps(Steps, Rounds):
    @rule(
        step=st.sampled_from(
            ["purge", "prune", "never_dispatched", "due_rechecks", "other_rechecks"]
        )
    )
    def begin_a_step(self, step):
        if step == "purge":
            self.say("a purge")
            for purge in registry.registered_purges():
                purge(60)
            self._purged()
        elif step == "prune":
            self._prune()
        else:
            rows = getattr(BackgroundTask.objects, step)().with_is_due().order_by("pk")
            if batch := list(rows[:BATCH_SIZE]):
                self.say(f"scan {step}: {batch}")
                self.scans.append(batch)

    def _prune(self) -> None:
        stored = {pk for pk, _ in self.chunks}
        old = [
            task.pk
            for task in self.tasks.values()
            if task.may_be_pruned(self.now) and task.pk not in stored
        ]
        self.say(f"a prune of {old}")
        removed = BackgroundTask.objects.prune(timedelta(seconds=PRUNE_SECONDS))
        holds("what ended long ago is pruned", removed == len(old), f"{removed}, not {old}")
        for pk in old:
            self.pruned.append(self.tasks.pop(pk))

    @precondition(lambda self: self.scans)
    @rule(
        number=st.integers(0, 3),
        meanwhile=st.sampled_from(["", "claimed", "tried", "cancelled", "run again"]),
        reported=st.sampled_from([False, False, True]),
    )
    def hand_over(self, number, meanwhile, reported):
        """What was read before is handed over now; whoever went on meanwhile is not touched."""
        batch = self.scans.pop(-1 - number % len(self.scans))
        if task := self.tasks.get(batch[0].pk):
            self._goes_on(task, meanwhile)
        if reported:
            key, attempt = f"teamdesk:job:{batch[0].job_id}", batch[0].attempt + 1
            record = {"state": "failed", "attempt": attempt, "message": "of-another-life"}
            world.client().delete(key)
            world.client().hset(key, mapping=record)
        self.say(f"hand over {batch}{', the first reported failed' if reported else ''}")
        queues = world.queues()
        dispatcher._hand_over(batch, dispatcher.Report())
        self.settle(world.queues())
        for seen in batch:
            if not (task := self.tasks.get(seen.pk)):
                continue
            at = world.microseconds(seen.run_at)
            due, queue_ = seen.is_due, task.kind.queue
            said = verdict(seen.job_id, seen.attempt, at, due, queue_, queues)
            if (task.status, task.run, task.attempt) != (WAITING, seen.run, seen.attempt):
                continue
            if said == "failed":
                task.queue_said_failed(queues.records[task.job].attempt, self.now)
            if task.status == WAITING:
                task.dispatched_at = self.now

    def _goes_on(self, task: Expected, how: str) -> None:
        """Something happens to a task between the reading of a round and what it does."""
        if how in ("claimed", "tried") and task.may_be_claimed(task.run, self.now):
            stray = Message(str(uuid.uuid4()), task.kind.queue, [task.job], 0)
            (lease,) = self._claim([(task.pk, task.run)], stray)
            if how == "tried":
                lease.fail_attempt(self._error("fail"))
                self._move(task, "fail")
        if how in ("cancelled", "run again") and task.is_live:
            world.cancel(task.pk)
            task.cancel(self.now)
        if how == "run again":
            self.retry(task)

    @precondition(lambda self: any(t.has_expired_lease(self.now) for t in self.tasks.values()))
    @rule()
    def read_expired_leases(self):
        self.expired += BackgroundTask.objects.with_expired_lease().order_by("pk")
        self.say(f"read as expired: {self.expired}")

    @precondition(lambda self: self.expired)
    @rule(number=st.integers(0, 3), together=st.integers(1, 3))
    def recover_what_was_read(self, number, together):
        seen = [self.expired.pop(-1 - number % len(self.expired))]
        while len(seen) < together and self.expired:
            seen.append(self.expired.pop())
        due = {
            row.pk
            for row in seen
            if (task := self.tasks.get(row.pk))
            and task.is_held_by(row.execution_id)
            and task.has_expired_lease(self.now)
        }
        self.say(f"recover {seen}, of which {sorted(due)} did not go on")
        statuses = recovery.recover_together(seen)
        holds("recovery takes expired leases only", statuses.keys() == due, f"{seen}: {statuses}")
        for pk in due:
            self.tasks[pk].recover(self.now)
