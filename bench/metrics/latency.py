"""From the commit of one job to its effect, while nothing else is to be done."""

import statistics

from bench.arms import OURS
from bench.measuring import Book, percentile
from bench.running import WARM_UP, RunningArm

MEDIAN, P99 = "commit to effect, median", "commit to effect, p99"
PAUSED = "commit to effect after a pause, median"

# The steps of ours, each with the moment that ends it.
STEPS = {
    "hand-over": "the client has a connection to Valkey and asks it for the time of publishing",
    "pick-up": "Celery calls the task in a process of its pool",
    "claim": "the row of the attempt is written; its commit is still to come",
    "start": "the handler is called: commit, record in Valkey, the thread that renews",
    "effect": "the effect is inserted",
    "finish": "effect and COMPLETED are committed",
}

_EFFECTS = """
SELECT job, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8
FROM bench_effects WHERE job < %s
"""
_MOMENTS = """
SELECT effect.job, effect.published_at, effect.picked_up_at,
       extract(epoch FROM attempt.started_at)::float8, effect.called_at,
       extract(epoch FROM effect.at)::float8,
       extract(epoch FROM pg_xact_commit_timestamp(effect.xmin))::float8
FROM bench_effects effect
JOIN tasks_backgroundtask task ON (task.payload->>'job')::bigint = effect.job
JOIN tasks_taskattempt attempt ON attempt.task_id = task.id
WHERE effect.job < %s
"""


def measure(running: RunningArm, book: Book, jobs: int) -> None:
    """One after another without a pause; and some with one, since a worker that has just ended a
    job looks for the next at once, which flatters those that otherwise sleep between looks."""
    name = running.arm.name
    jobs = max(10, int(jobs * running.arm.singles))
    tight, committed = waits(running, first=0, jobs=jobs)
    if tight:
        book.add(name, MEDIAN, "ms", statistics.median(tight))
        book.add(name, P99, "ms", percentile(tight, 0.99))
    if running.arm is OURS:
        _add_steps(running, book, committed)
    paused, _ = waits(running, first=jobs, jobs=max(10, jobs // 5), longest_pause=0.3)
    if paused:
        book.add(name, PAUSED, "ms", statistics.median(paused))


def waits(running: RunningArm, **singles) -> tuple[list[float], dict[int, float]]:
    """Milliseconds of each job, and when each was committed."""
    committed = dict(running.ask("singles", **singles))
    effects = dict(running.connection.execute(_EFFECTS, [WARM_UP]).fetchall())
    done = [(effects[job] - at) * 1000 for job, at in committed.items() if job in effects]
    return done, committed


def _add_steps(running: RunningArm, book: Book, committed: dict[int, float]) -> None:
    """Where the time goes: the medians of the steps between the moments of each job."""
    steps: dict[str, list[float]] = {}
    for job, *moments in running.connection.execute(_MOMENTS, [WARM_UP]).fetchall():
        if job not in committed or None in moments:
            continue
        moments = [committed[job], *moments]
        for name, before, after in zip(STEPS, moments, moments[1:], strict=False):
            steps.setdefault(name, []).append((after - before) * 1000)
    for name, values in steps.items():
        book.add(running.arm.name, f"of it: {name}", "ms", statistics.median(values))
