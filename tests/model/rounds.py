"""What the dispatcher does: whole rounds, well or with a fault; and its steps, one by one."""

from contextlib import suppress
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tasks import dispatcher, recovery, registry
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.models import BackgroundTask
from tests.model import faults, world
from tests.model.base import Base
from tests.model.expected import (
    BATCH_SIZE,
    FAILED,
    PRUNE_SECONDS,
    RECHECK_SECONDS,
    WAITING,
    Expected,
    Queues,
    holds,
    verdict,
)


class Rounds(Base):
    # Whole rounds

    @rule()
    def round(self):
        self.say("a round")
        queues, rows = world.queues(), world.rows()
        verdicts = self._verdicts(queues, rows)
        checked = self._checked(rows)
        messages = {}
        for pk in checked:
            task, row = self.tasks[pk], rows[pk]
            job, is_due = task.job, task.is_due(self.now)
            if verdicts[pk] == "failed":
                task.queue_said_failed(queues.records[job].attempt, self.now)
                is_due = False
                if task.status == FAILED:
                    continue
            task.dispatched_at = self.now
            lost = {"add": {1}, "failed": {1}, "nothing": {0}, "add if empty": {0, 1}}[verdicts[pk]]
            messages[job] = lost if is_due else {0}
            if not is_due:
                queues.delayed[job] = row["score"]
        self._promote(queues, messages)
        dispatch_once()
        self._recover_and_purge()
        self._has_handed_over(queues, messages)

    @precondition(lambda self: "faulty rounds" in self.troubles)
    @rule(fault=st.sampled_from(faults.FAULTS))
    def round_with_a_fault(self, fault):
        self.say(f"a round in which {fault}")
        queues, rows = world.queues(), world.rows()
        verdicts = self._verdicts(queues, rows)
        with faults.planted(fault) as touched:
            with suppress(RoundFault):
                dispatch_once()
        self.settle(world.queues())
        after = world.rows()
        for pk, said in verdicts.items():
            self._what_became_of(self.tasks[pk], said, queues, rows[pk], after[pk])
            if after[pk]["checked_at"] == rows[pk]["checked_at"]:
                continue
            for_sure = fault in faults.WITHOUT_STAMP or pk in touched
            holds("a stamp comes after the hand-over", not for_sure, f"{pk} was stamped")
            self.tasks[pk].dispatched_at = self.now
        self._recover_and_purge()

    def _what_became_of(self, task: Expected, said: str, queues: Queues, row, after) -> None:
        """The round may have come to it or not."""
        if said == "failed" and any(
            row[name] != after[name] for name in ("attempt", "status", "at")
        ):
            task.queue_said_failed(queues.records[task.job].attempt, self.now)

    def _verdicts(self, queues: Queues, rows: dict[int, dict]) -> dict[int, str]:
        return {
            pk: verdict(
                task.job,
                task.attempt,
                rows[pk]["score"],
                task.is_due(self.now),
                task.kind.queue,
                queues,
            )
            for pk, task in self.tasks.items()
            if pk in rows and task.needs_check(self.now)
        }

    def _checked(self, rows: dict[int, dict]) -> list[int]:
        """Whom a round looks at: all that is new, all that is soon due, one batch of the others."""
        due = [task for task in self.tasks.values() if task.needs_check(self.now)]
        first = [
            task.pk
            for task in due
            if task.dispatched_at is None or task.run_at <= self.now + RECHECK_SECONDS
        ]
        others = [rows[task.pk] for task in due if task.pk not in first]
        others.sort(key=lambda row: (row["checked_at"], row["at"], row["id"]))
        return first + [row["id"] for row in others[:BATCH_SIZE]]

    def _promote(self, queues: Queues, messages: dict[str, set[int]]) -> None:
        """What was in the delayed set until now comes, if it was not handed over just before."""
        for task in self.tasks.values():
            comes = queues.delayed.get(task.job)
            waits = task.status == WAITING and task.is_due(self.now)
            if waits and comes is not None and comes <= queues.now:
                messages[task.job] = {max(1, more) for more in messages.get(task.job, {0})}

    def _has_handed_over(self, before: Queues, messages: dict[str, set[int]]) -> None:
        """Each job that was lost, or whose time came, has one message more; no other has."""
        after = world.queues()
        self._travel_by_rule(after)
        self.settle(after)
        for task in self.tasks.values():
            more = after.count(task.job) - before.count(task.job)
            fits = more in messages.get(task.job, {0})
            holds("what the queue lost is handed over again", fits, f"{task}: {more}")
            there = after.records.get(task.job) or task.job not in messages
            holds("what is handed over is recorded", there, f"{task} has no record")
        left = {job for job, score in after.delayed.items() if score <= before.now}
        holds("what is due leaves the delayed set", not left, f"{left}")

    def _travel_by_rule(self, after: Queues) -> None:
        """First attempts of one kind share a message, as many as it allows; a retry is alone."""
        for message in (message for each in after.lists.values() for message in each):
            if message.uuid not in self.seen and len(message.jobs) > 1:
                tasks = [self.task_of(job) for job in message.jobs]
                one_kind = len({task.kind.name for task in tasks}) == 1
                fits = one_kind and len(tasks) <= tasks[0].kind.batch
                first = not any(task.attempt for task in tasks)
                holds("only first attempts travel together", fits and first, f"{message.jobs}")

    def _recover_and_purge(self) -> None:
        for task in self.tasks.values():
            if task.has_expired_lease(self.now):
                task.recover(self.now)
        self._purged()

    def _purged(self) -> None:
        self.chunks = {
            (pk, execution)
            for pk, execution in self.chunks
            if self.tasks[pk].needs_chunks_of(execution, self.now)
        }

    # Steps of a round, between which anything may happen

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
    @rule(number=st.integers(0, 3))
    def hand_over(self, number):
        """What was read before is handed over now; whoever went on meanwhile is not touched."""
        batch = self.scans.pop(-1 - number % len(self.scans))
        self.say(f"hand over {batch}")
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
