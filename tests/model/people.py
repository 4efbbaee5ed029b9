"""What people and business transactions do: enqueue, cancel, ask for a new run."""

from datetime import timedelta

from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tasks.clock import database_now
from tasks.models import BackgroundTask
from tasks.models.background_task import DedupConflict
from tests.model import world
from tests.model.base import Base
from tests.model.expected import CANCELLED, FAILED, Expected, holds
from tests.model.kinds import KINDS

MOST_TASKS = 9
TROUBLES = ("faulty rounds", "losses", "wrong records", "wrong times", "dying workers")
any_kind = st.sampled_from(["MANY", "MANY", "NOTE", "NOTE", "ONCE", "RESULT"])
any_key = st.sampled_from([None, None, None, "a", "b"])
any_wait = st.sampled_from([0, 0, 0, 5_000, 40_000])  # seconds until it may run
any_fate = st.sampled_from(["committed"] * 5 + ["rolled back", "savepoint rolled back"])
which = st.integers(0, 9)  # counts from the newest


class Unwanted(Exception):
    """Rolls a transaction back."""


class People(Base):
    def pick(self, number: int) -> Expected:
        tasks = list(self.tasks.values())
        return tasks[-1 - number % len(tasks)]

    @initialize(
        kinds=st.lists(any_kind, min_size=1, max_size=4),
        troubles=st.sets(st.sampled_from(TROUBLES)),
    )
    def there_is_work(self, kinds, troubles):
        self.troubles = troubles
        for kind in kinds:
            self._enqueue(kind, None, 0)

    @precondition(lambda self: len(self.tasks) < MOST_TASKS)
    @rule(kind=any_kind, key=any_key, wait=any_wait, fate=any_fate)
    def enqueue(self, kind, key, wait, fate):
        if fate == "committed":
            self._enqueue(kind, key, wait)
        else:
            self._enqueue_and_roll_back(kind, key, savepoint=fate == "savepoint rolled back")

    def _enqueue_and_roll_back(self, kind: str, key: str | None, savepoint: bool) -> None:
        """The whole transaction, or only a savepoint within one that commits."""
        with transaction.atomic():
            try:
                with transaction.atomic():
                    self._insert(kind, key, 0)
                    raise Unwanted
            except Unwanted:
                transaction.set_rollback(not savepoint)
        self.say(f"enqueue {kind} and roll back")

    def _enqueue(self, kind: str, key: str | None, wait: int) -> None:
        with transaction.atomic():
            task, holder = self._insert(kind, key, wait)
        self.say(f"enqueue {kind} {task.pk}, key {key}, due in {wait} s")
        if holder is None:
            run_at = self.now + wait
            self.tasks[task.pk] = Expected(task.pk, KINDS[kind], key, run_at, self.now)

    def _insert(self, kind: str, key: str | None, wait: int):
        live = (task for task in self.tasks.values() if task.is_live)
        holder = next((task for task in live if key and task.key == key), None)
        run_at = database_now() + timedelta(seconds=wait) if wait else None
        task = BackgroundTask.objects.enqueue(kind, run_at=run_at, dedup_key=key)
        if holder:
            holds("a live key is held once", task.pk == holder.pk, f"{key}: {task} beside {holder}")
        else:
            holds("an enqueue adds a task", task.pk not in self.tasks, f"{task} was there already")
            if kind == "RESULT":
                world.request_result(task)
        return task, holder

    @precondition(lambda self: self.tasks)
    @rule(numbers=st.sets(which, min_size=1, max_size=2), commits=st.integers(0, 3))
    def cancel(self, numbers, commits):
        tasks = {task.pk: task for task in map(self.pick, sorted(numbers))}
        due = sorted(pk for pk, task in tasks.items() if task.is_live)
        with transaction.atomic():
            done = BackgroundTask.objects.filter(pk__in=tasks).cancel(reason="The model says so.")
            transaction.set_rollback(not commits)
        self.say(f"cancel {sorted(tasks)}{'' if commits else ' and roll back'}")
        holds("a cancel takes the live ones", done == len(due), f"{done} of {due}")
        for pk in due if commits else ():
            tasks[pk].cancel(self.now)

    @precondition(lambda self: self.tasks)
    @rule(number=which, ended=st.sampled_from([True, True, False]), from_an_old_page=st.booleans())
    def run_again(self, number, ended, from_an_old_page):
        """``ended``: one that may be, if there is one; else whichever, refused if it must be."""
        may = [task for task in self.tasks.values() if task.status in (FAILED, CANCELLED)]
        tasks = may if ended and may else list(self.tasks.values())
        task = tasks[-1 - number % len(tasks)]
        seen = BackgroundTask.objects.get(pk=task.pk)
        if from_an_old_page and task.run:
            seen.run -= 1
        self.retry(task, seen)

    def retry(self, task: Expected, seen: BackgroundTask | None = None) -> None:
        seen = seen or BackgroundTask.objects.get(pk=task.pk)
        allowed = task.status in (FAILED, CANCELLED) and seen.run == task.run
        others = [other for other in self.tasks.values() if other.is_live and other is not task]
        conflict = allowed and task.key and any(other.key == task.key for other in others)
        self.say(f"run {task} again, seen as run {seen.run}")
        try:
            done = seen.retry()
        except DedupConflict:
            holds("a conflict has a holder", conflict, f"{task} met none")
            return
        holds("a live key is held once", not conflict, f"{task} was run again beside its key")
        holds("a new run comes after an end, once", done == allowed, f"{task}: {done}")
        if done:
            task.run_again(self.now)
