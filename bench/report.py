"""The tables at the end, and whether the targets are met."""

import statistics
import sys

from bench import scale
from bench.arms import ARMS, CELERY, OURS, TASKS_DB_EAGER
from bench.measuring import Book, Target, short, table
from bench.metrics import drain, enqueue, idle, latency, memory

_HIGHER_IS_BETTER = {drain.METRIC}
_POLLING_PEERS = [a.name for a in ARMS if a.polls and a not in (OURS, TASKS_DB_EAGER)]


def show(book: Book) -> None:
    say = sys.stdout.write
    targets = dict(_targets(book))
    steps = [metric for metric in book.metrics() if metric.startswith("of it: ")]
    own = [metric for metric in book.metrics() if metric.startswith("worker memory")]
    for metric in book.metrics():
        if metric in steps or metric in own or metric in ("lost", "doubled"):
            continue
        lines = table(book, metric, higher_is_better=metric in _HIGHER_IS_BETTER)
        say("\n" + "\n".join(lines) + "\n")
        if metric in targets:
            say(f"{targets[metric]}\n")
    for title, metrics in (("ours, step by step", steps), ("ours, memory", own)):
        if metrics:
            say("\n" + "\n".join(_own_table(book, title, metrics)) + "\n")
    if memory.metric(1.0) in targets:
        say(f"{targets[memory.metric(1.0)]}\n")
    say("\n" + "\n".join(_account(book)) + "\n")
    if book.failures:
        say(f"\nRounds that failed: {', '.join(book.failures)}\n")


def _account(book: Book) -> list[str]:
    lines = ["| all rounds | lost | doubled |", "|---|---:|---:|"]
    for series in book.of("lost"):
        doubled = book.get(series.arm, "doubled")
        lines.append(f"| {series.arm} | {sum(series.values):.0f} | {sum(doubled.values):.0f} |")
    return lines


def _own_table(book: Book, title: str, metrics: list[str]) -> list[str]:
    lines = [f"| {title} | median | min | max | runs |", "|---|---:|---:|---:|---:|"]
    for metric in metrics:
        series = book.get(OURS.name, metric)
        numbers = (series.median, min(series.values), max(series.values))
        name = metric.removeprefix("of it: ")
        cells = [f"{name}, {series.unit}", *map(short, numbers), str(len(series.values))]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _targets(book: Book):
    """(metric, Target) for all that could be measured."""

    def median(arm: str, metric: str) -> float | None:
        series = book.get(arm, metric)
        return series.median if series else None

    ours = OURS.name
    peers = [s.median for s in book.of(drain.METRIC) if s.arm != ours]
    if peers and (own := median(ours, drain.METRIC)):
        yield drain.METRIC, Target("ours : best peer", own / max(peers), 1.5, at_least=True)
    for metric, limit in ((latency.MEDIAN, 1.8), (latency.P99, 3)):
        if (own := median(ours, metric)) and (plain := median(CELERY.name, metric)):
            yield metric, Target("ours : plain Celery", own / plain, limit)
    if (own := median(ours, enqueue.METRIC)) and (bare := median(enqueue.BARE, enqueue.METRIC)):
        yield enqueue.METRIC, Target("ours : bare INSERT", own / bare, 1.5)
    for metric in (idle.QUERIES, idle.CPU):
        polling = [value for name in _POLLING_PEERS if (value := median(name, metric)) is not None]
        rest = statistics.median(polling) if polling else 0
        if rest and (own := median(ours, metric)) is not None:
            yield metric, Target("ours : median of the peers that poll", own / rest, 1)
    for metric in (scale.ROUND, latency.MEDIAN):
        if (large := median(scale.LARGE.name, metric)) and (own := median(ours, metric)):
            yield metric, Target("large : small", large / own, 1.3)
    first, last = (median(ours, memory.metric(share)) for share in (0.2, 1.0))
    if first and last:
        yield memory.metric(1.0), Target("after all : after a fifth", last / first, 1.05)
