"""What must hold for every task whatever its kind, and how long recoveries took."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Count, F, Max, Q
from django.db.models.functions import Now

from bench.soaking.monkey import Action
from bench.soaking.stage import LEASE_SECONDS, RECHECK_SECONDS, ROUND_SECONDS, Stage
from exports.purge import unneeded_chunks
from tasks import registry
from tasks.models import BackgroundTask, DispatcherStatus, TaskAttempt, TaskStatus
from tasks.records import LOST_AFTER_SECONDS

# A message that died with its worker is judged lost after this long, and seen at a re-check. Then
# the slowest piece of work still has to run.
PATIENCE_SECONDS = LOST_AFTER_SECONDS + RECHECK_SECONDS + 15
# Nothing waits longer: a ladder without an end would be a task that hangs, too.
LONGEST_SECONDS = 600


class Watch:
    """Looks how long the dispatcher's rounds take on this machine, under this load, and when
    executions gave their last sign of life, which the ledger forgets."""

    def __init__(self):
        self.longest_round = 0.0
        self.signs: dict[UUID, float] = {}  # by execution, seconds since 1970

    def run(self, closing: threading.Event) -> None:
        while not closing.wait(ROUND_SECONDS / 2):
            try:
                seconds = DispatcherStatus.current().last_seconds or 0
                self.longest_round = max(self.longest_round, seconds)
                running = BackgroundTask.objects.filter(status=TaskStatus.RUNNING)
                for execution, at in running.values_list("execution_id", "updated_at"):
                    self.signs[execution] = at.timestamp()
            except (DatabaseError, InterfaceError):
                connection.close()
        connection.close()

    @property
    def two_rounds(self) -> float:
        return 2 * (ROUND_SECONDS + self.longest_round)


def accepted():
    """Every task but the periodic chores, of which there is always a new one."""
    chores = [kind.name for kind in registry.kinds().values() if kind.every]
    return BackgroundTask.objects.exclude(kind__in=chores)


def wait_for_the_end(seconds: float) -> list[str]:
    """Until everything has ended, and the purge has nothing left to do.

    ``seconds`` is how long nothing may end and nothing wait on its ladder: a slow machine gets the
    time that its backlog needs, a task that hangs does not. Returns what hangs.
    """
    fewest, now = None, time.monotonic()
    deadline, latest = now + seconds, now + LONGEST_SECONDS
    while True:
        left = accepted().live()
        count = left.count() + len(unneeded_chunks())
        if not count:
            return []
        now = time.monotonic()
        if fewest is None or count < fewest or left.filter(run_at__gt=Now()).exists():
            fewest, deadline = count, min(now + seconds, latest)
        if now > deadline:
            stuck = [
                f"stuck: task {task.job_id} {task.kind} is {task.status}, attempt {task.attempt}, "
                f"run_at {task.run_at}, dispatched_at {task.dispatched_at}, {task.last_error!r}"
                for task in left
            ]
            return stuck or ["stuck: chunks that nobody needs are not removed"]
        time.sleep(0.25)


def breaches() -> list[str]:
    tasks = accepted()
    attempts = TaskAttempt.objects.filter(task__in=tasks)
    found = [
        f"{task}: failed after {task.attempt} attempts: {task.last_error}"
        for task in tasks.filter(status=TaskStatus.FAILED).exclude(run=0, payload__fails=True)
    ]
    found += [
        f"task {attempt}: never closed"
        for attempt in attempts.filter(finished_at=None, task__in=tasks)
    ]
    completions = (
        attempts.filter(outcome="completed").values("task", "run").annotate(times=Count("pk"))
    )
    found += [
        f"doubled: task {row['task']}:{row['run']} completed {row['times']} times"
        for row in completions.filter(times__gt=1)
    ]
    of_this_run = Q(attempts__outcome="completed", attempts__run=F("run"))
    done = tasks.filter(status=TaskStatus.COMPLETED)
    found += [
        f"task {task}: completed without an attempt that says so"
        for task in done.annotate(ends=Count("attempts", filter=of_this_run)).exclude(ends=1)
    ]
    return found


@dataclass(frozen=True)
class Recovery:
    """A lease that expired: ``gross_seconds`` from the kill or freeze (or the sign of life that was
    seen after it) to the release, and ``seconds`` without the time in which no rounds could run
    because of other actions."""

    attempt: str
    cause: Action | None
    seconds: float
    gross_seconds: float


def recoveries(actions: list[Action], stage: Stage, watch: Watch) -> list[Recovery]:
    """Every lease that ran out. The cause is the last action upon its worker, or upon PostgreSQL,
    that is old enough to be it."""
    outages = _times_without_rounds(stage)
    found = []
    for attempt in TaskAttempt.objects.filter(outcome="lease_expired").order_by("id"):
        started, released = attempt.started_at.timestamp(), attempt.finished_at.timestamp()
        # What happened less than half a lease ago cannot have made it expire.
        causes = [
            action
            for action in actions
            if started <= action.at <= released - LEASE_SECONDS / 2
            and (
                attempt.worker.startswith(action.member.removeprefix("worker-") + "@")
                or action.member == stage.postgres.name
            )
        ]
        cause = causes[-1] if causes else None
        # Of a pool with several processes an action may have hit another one.
        since = max(started, watch.signs.get(attempt.execution_id, 0), cause.at if cause else 0)
        gross = released - since
        net = gross - _overlap(since, released, outages)
        found.append(Recovery(str(attempt), cause, net, gross))
    return found


def _times_without_rounds(stage: Stage) -> list[tuple[float, float]]:
    """Without PostgreSQL, or with a Valkey that a round waits for; with a frozen beat, which may
    hold the round's lock; and without any beat."""
    one, other = stage.beats
    times = [*stage.postgres.outages, *stage.valkey.outages, *one.freezes, *other.freezes]
    for begin, end in one.outages:
        for others_begin, others_end in other.outages:
            times.append((max(begin, others_begin), min(end, others_end)))
    return times


def _overlap(since: float, until: float, outages: list[tuple[float, float]]) -> float:
    """How much of that time any of the outages lasted."""
    total, reached = 0.0, since
    for begin, end in sorted(outages):
        begin, end = max(begin, reached), min(end, until)
        if end > begin:
            total, reached = total + end - begin, end
    return total


def keep(folder: Path) -> None:
    """The ledger as it is now, as CSV files, for whoever looks into a breach."""
    connection.ensure_connection()
    for model in (BackgroundTask, TaskAttempt):
        table = model._meta.db_table
        query = f"COPY (SELECT * FROM {table} ORDER BY id) TO STDOUT (FORMAT csv, HEADER)"
        with (folder / f"{table}.csv").open("wb") as file:
            with connection.connection.cursor() as cursor, cursor.copy(query) as rows:
                file.writelines(rows)


def figures() -> dict[str, float]:
    """Counts and times in seconds."""
    tasks = accepted()
    attempts = TaskAttempt.objects.filter(task__in=tasks)
    outcomes = dict(
        attempts.values_list("outcome").annotate(number=Count("pk")).order_by("outcome")
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM max(first - greatest(run_at, created_at))) FROM ("
            " SELECT task.run_at, task.created_at, min(attempt.started_at) AS first"
            " FROM tasks_backgroundtask task JOIN tasks_taskattempt attempt"
            " ON attempt.task_id = task.id"
            " WHERE task.run = 0 AND task.attempt = 1"
            " GROUP BY task.id) AS waits"
        )
        longest = cursor.fetchone()[0]
    return {
        "tasks": tasks.count(),
        "completed": tasks.filter(status=TaskStatus.COMPLETED).count(),
        "attempts": sum(outcomes.values()),
        **{f"attempts {outcome}": number for outcome, number in outcomes.items()},
        "most attempts of a task": tasks.aggregate(most=Max("attempt"))["most"] or 0,
        "longest wait": round(float(longest or 0), 1),
    }
