"""What the dispatcher does: whole rounds, well or with a fault; and its steps, one by one."""

from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tasks.dispatcher import RoundFault, dispatch_once
from tests.model import faults, world
from tests.model.expected import (
    BATCH_SIZE,
    FAILED,
    RECHECK_SECONDS,
    WAITING,
    Expected,
    Queues,
    holds,
    verdict,
)
from tests.model.people import MOST_TASKS, People


class Rounds(People):
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
    @rule(fault=st.sampled_from((*faults.FAULTS, faults.REFUSED, faults.UNANSWERED)))
    def round_with_a_fault(self, fault):
        if len(self.tasks) < MOST_TASKS:
            self._enqueue("NOTE", None, 0)  # there is something to hand over
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
