"""The rounds: in each every arm once, in an order that moves on, all on the same servers."""

import sys
import time
from argparse import Namespace
from dataclasses import dataclass, replace

from bench.arms import ARMS, OURS, Arm
from bench.measuring import Book
from bench.metrics import drain, enqueue, idle, latency, memory
from bench.running import ArmFailed, RunningArm
from bench.stage import Stage


@dataclass(frozen=True)
class Size:
    rows: int  # of one enqueueing transaction
    singles: int  # jobs one at a time
    jobs: int  # to drain
    idle_seconds: float
    tasks: int  # to look at memory


FULL = Size(rows=1_000, singles=200, jobs=3_000, idle_seconds=20, tasks=100_000)
QUICK = Size(rows=200, singles=20, jobs=200, idle_seconds=4, tasks=5_000)


def compare(stage: Stage, options: Namespace) -> Book:
    book, size = Book(tell=say), QUICK if options.quick else FULL
    size = replace(size, jobs=options.jobs or size.jobs)
    arms = chosen(options.arms)
    try:
        _compare(stage, options, book, size, arms)
    except KeyboardInterrupt:  # what was measured so far is worth showing
        book.failures.append("interrupted")
    return book


def _compare(stage: Stage, options: Namespace, book: Book, size: Size, arms: list[Arm]) -> None:
    if set(options.metrics) - {"memory"}:
        for number in range(options.rounds):
            turn = number % len(arms)
            for arm in arms[turn:] + arms[:turn]:
                say(f"round {number + 1} of {options.rounds}: {arm.name}")
                try:
                    _one_round(stage, arm, book, size, options.metrics)
                except ArmFailed as failure:  # the other arms' figures are worth having
                    say(str(failure))
                    book.failures.append(arm.name)
    if "memory" in options.metrics and OURS in arms:
        say(f"memory over {size.tasks:,} tasks")
        with RunningArm(stage, OURS) as running:
            running.start()
            memory.measure(running, book, size.tasks, worker="worker-short")
            account(running, book)


def chosen(names: str | None) -> list[Arm]:
    """Raises SystemExit for a name that no arm has."""
    if not names:
        return list(ARMS)
    known = {arm.name: arm for arm in ARMS}
    if strange := set(names.split(",")) - set(known):
        raise SystemExit(f"No such arm: {', '.join(sorted(strange))}; there are {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def _one_round(stage: Stage, arm: Arm, book: Book, size: Size, metrics: list[str]) -> None:
    with RunningArm(stage, arm) as running:
        if "enqueue" in metrics and arm.drains:
            enqueue.measure(running, book, size.rows)
        if not {"latency", "drain", "idle"} & set(metrics):
            return
        running.start()
        if "latency" in metrics:
            latency.measure(running, book, size.singles)
            account(running, book)
        if "drain" in metrics and arm.drains:
            drain.measure(running, book, size.jobs)
        if "idle" in metrics:
            idle.measure(running, book, size.idle_seconds)
        running.stop()
        account(running, book)


def account(running: RunningArm, book: Book) -> None:
    """Every order must have had its effect, once."""
    orders, effects = running.orders(), running.effects()
    book.add(running.arm.name, "lost", "jobs", orders - effects)
    book.add(running.arm.name, "doubled", "jobs", running.doubled())


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
