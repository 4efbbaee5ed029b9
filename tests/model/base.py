"""What the machine knows, and what must hold after each of its steps."""

import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass

from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine, invariant
from hypothesis.strategies import just
from hypothesis.strategies._internal.featureflags import FeatureFlags

from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask
from tests.model import ageing, kinds, world
from tests.model.expected import COMPLETED, RUNNING, WAITING, Attempt, Expected, Queues, holds
from tests.model.world import Message

_SWITCHES = "enabled_rules_strategy"
CLOSE = 500  # seconds; what the steps of an example really take is far less, every limit far more
ROUNDS_UNTIL_QUIET = 12


@dataclass(eq=False)
class Execution:
    """What a worker has in hand. It may act long after its lease was taken."""

    lease: Lease
    task: Expected
    message: Message

    @property
    def id(self) -> uuid.UUID:
        return self.lease.execution_id

    @property
    def holds(self) -> bool:
        return self.task.is_held_by(self.id)

    def __str__(self):
        return f"execution {self.task.pk}:{self.lease.task.run} #{self.lease.task.attempt}"


class Base(RuleBasedStateMachine):
    examples = 0  # begun, of all machines

    def __init__(self):
        super().__init__()
        # Hypothesis switches half of all rules off in each example. A task that is never enqueued,
        # handed over, taken and claimed tells nothing, so only troubles are switched off here.
        holds("the rules can be chosen", hasattr(self._rules_strategy, _SWITCHES), "not any more")
        setattr(self._rules_strategy, _SWITCHES, just(FeatureFlags()))
        Base.examples += 1
        world.empty()
        self.now = 0
        self.troubles: set[str] = set()  # those that happen in this example
        self.tasks: dict[int, Expected] = {}
        self.pruned: list[Expected] = []
        self.messages: list[Message] = []  # taken off their lists; delivered any number of times
        self.seen: dict[str, int] = {}  # when each message was published
        self.executions: list[Execution] = []
        self.chunks: set[tuple[int, uuid.UUID]] = set()
        self.scans: list = []  # batches that a round has read and not yet handed over
        self.expired: list[BackgroundTask] = []  # rows that a recovery has read

    # The pieces of rules

    def say(self, text: str) -> None:
        note(f"[{self.now}] {text}")

    def pass_time(self, seconds: int) -> None:
        ageing.age(seconds)
        self.now += seconds
        for batch in self.scans:
            for task in batch:
                task.run_at -= world.timedelta(seconds=seconds)

    def settle(self, queues: Queues) -> None:
        """After whatever may have published and stamped: notes how old each message is, and brings
        the stamps of this moment into the order of ids, so that the same steps go the same way."""
        for each in queues.lists.values():
            for message in each:
                self.seen.setdefault(message.uuid, self.now)
        world.order_stamps(CLOSE)

    def task_of(self, job: str) -> Expected | None:
        return self.tasks.get(int(job.partition(":")[0]))

    @contextmanager
    def unchanged(self, rule: str, what: str):
        """Nothing of the ledger and no effect changes in this block."""
        before = world.everything()
        yield
        holds(rule, world.everything() == before, f"{what} changed something")

    # What must hold

    @invariant()
    def the_ledger_is_as_the_model_says(self):
        rows = world.rows()
        for pk in self.tasks:
            holds("no committed task vanishes", pk in rows, f"task {pk} is gone")
        holds("what was rolled back never was", rows.keys() <= self.tasks.keys(), f"{rows.keys()}")
        self._no_key_is_held_twice(rows)
        traces = world.traces()
        for pk, task in self.tasks.items():
            mine = [each for each in traces.attempts if each["task_id"] == pk]
            self._is_held_by_one_execution(rows[pk], mine)
            self._is_within_its_policy(task, rows[pk])
            self._is(task, rows[pk])
            found = [Attempt(a["run"], a["attempt"], a["execution_id"], a["outcome"]) for a in mine]
            holds("attempts are written down", found == task.attempts, f"{task}: {found}")
        self._effects_are_those_of_completed_runs(traces.effects)
        holds("results are kept", traces.chunks == self.chunks, f"{traces.chunks}, {self.chunks}")

    def _no_key_is_held_twice(self, rows: dict[int, dict]) -> None:
        live = (WAITING, RUNNING)
        keys = [row["dedup_key"] for row in rows.values() if row["status"] in live]
        keys = [key for key in keys if key is not None]
        holds("a live key is held once", len(keys) == len(set(keys)), f"{keys}")

    def _is_held_by_one_execution(self, row: dict, attempts: list[dict]) -> None:
        open_ = [each["execution_id"] for each in attempts if not each["outcome"]]
        held = [row["execution_id"]] if row["status"] == RUNNING else []
        holds("one live execution, one open attempt", open_ == held, f"{row}: {attempts}")

    def _is_within_its_policy(self, task: Expected, row: dict) -> None:
        holds("a run never decreases", row["run"] >= task.run, f"{task}: {row}")
        if row["run"] == task.run:
            holds("an attempt never decreases", row["attempt"] >= task.attempt, f"{task}: {row}")
        claimed = sum(each.run == task.run for each in task.attempts)
        within = claimed <= row["attempt"] <= row["max_attempts"]
        holds("attempts are counted and within the policy", within, f"{task}: {row}")
        if row["run"] == task.run:
            most = task.max_attempts
            holds("attempts are granted by rule", row["max_attempts"] == most, f"{task}: {row}")

    def _is(self, task: Expected, row: dict) -> None:
        exact = {
            "kind": task.kind.name,
            "status": task.status,
            "run": task.run,
            "attempt": task.attempt,
            "execution_id": task.execution,
            "dedup_key": task.key,
            "progress_done": task.progress[0],
            "progress_total": task.progress[1],
        }
        found = {name: row[name] for name in exact}
        holds("only the arrows move a task", found == exact, f"{task}: {found}, not {exact}")
        holds("terminal has an end", (row["finished_at"] is None) == task.is_live, f"{task}: {row}")
        times = {
            "run_at": task.run_at,
            "dispatched_at": task.dispatched_at,
            "updated_at": task.alive_at,
            "expires_at": task.expires_at,
        }
        for name, moment in times.items():
            is_so = row[name] is None if moment is None else self.is_about(row[name], moment)
            holds(
                f"{name} follows the rules", is_so, f"{task}: {row[name]} at {self.now}, {moment}"
            )

    def is_about(self, seconds: float | None, moment: int) -> bool:
        return seconds is not None and abs(self.now + seconds - moment) < CLOSE

    def _effects_are_those_of_completed_runs(self, found: list[tuple]) -> None:
        due = sorted(
            (task.pk, run, execution)
            for task in (*self.tasks.values(), *self.pruned)
            for run, execution in task.completed_runs.items()
        )
        holds("one effect per completed run", found == due, f"{found}, not {due}")

    # The end

    def teardown(self):
        if sys.exc_info()[0] is None:
            self._what_was_committed_ends()

    def _what_was_committed_ends(self) -> None:
        """All faults stop; rounds, a faithful worker and time bring every task to its end."""
        for _ in range(ROUNDS_UNTIL_QUIET):
            dispatch_once()
            self.work_off_the_lists()
            live = [row for row in world.rows().values() if row["status"] in (WAITING, RUNNING)]
            if not live:
                break
            far = max(row["run_at"] for row in live)
            self.pass_time(6 * ageing.UNIT if far < 0 else int(far) + ageing.UNIT)
        rows = world.rows()
        left = {pk: row for pk, row in rows.items() if row["status"] in (WAITING, RUNNING)}
        holds("what was committed ends", not left, f"still live: {left}")
        holds("rows of the ledger stay", rows.keys() == self.tasks.keys(), f"{rows.keys()}")
        completed = {(pk, row["run"]) for pk, row in rows.items() if row["status"] == COMPLETED}
        completed |= {(task.pk, run) for task in self.pruned for run in task.completed_runs}
        noted = [(pk, run) for pk, run, _ in world.traces().effects]
        holds("one effect per completed run", sorted(completed) == noted, f"{noted}")

    def work_off_the_lists(self) -> None:
        """A worker that does all it is told, and well."""
        from tasks import worker

        kinds.Stage.play = lambda task, lease: (
            lambda: kinds.write_effect(task.pk, task.run, lease.execution_id)
        )
        for queue in ("short", "long"):
            while message := world.take(queue, self.seen):
                jobs = [tuple(map(int, job.split(":"))) for job in message.jobs]
                worker.run_jobs(jobs, message.uuid, message.published_at)
