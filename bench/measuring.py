"""What was measured, and how it is shown."""

import json
import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Series:
    """One figure of one arm, measured once per round."""

    arm: str
    metric: str
    unit: str
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def as_json(self) -> dict:
        return {
            "arm": self.arm,
            "metric": self.metric,
            "unit": self.unit,
            "median": round(self.median, 4),
            "min": round(min(self.values), 4),
            "max": round(max(self.values), 4),
            "runs": len(self.values),
        }


class Book:
    """All series of a benchmark, in the order in which they were first measured."""

    def __init__(self, tell: Callable[[str], None] = lambda text: None):
        self._series: dict[tuple[str, str], Series] = {}
        self._tell = tell
        self.failures: list[str] = []  # arms that did not end a round

    def add(self, arm: str, metric: str, unit: str, value: float) -> None:
        series = self._series.setdefault((arm, metric), Series(arm, metric, unit))
        series.values.append(value)
        self._tell(f"{arm}: {metric} {short(value)} {unit}")

    def get(self, arm: str, metric: str) -> Series | None:
        return self._series.get((arm, metric))

    def of(self, metric: str) -> list[Series]:
        return [series for series in self._series.values() if series.metric == metric]

    def metrics(self) -> list[str]:
        return list(dict.fromkeys(metric for _, metric in self._series))

    def total(self, metric: str) -> float:
        return sum(sum(series.values) for series in self.of(metric))

    def write(self, file: Path) -> None:
        rows = [series.as_json() for series in self._series.values()]
        file.write_text(json.dumps(rows, indent=1) + "\n")


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(round(len(ordered) * share, 6)) - 1]


def table(book: Book, metric: str, ours: str = "ours", higher_is_better: bool = False) -> list[str]:
    """A Markdown table: each arm with our ratio to it. Ours first, then the best of the others."""
    series = sorted(book.of(metric), key=lambda each: each.median, reverse=higher_is_better)
    if not series:
        return []
    own = book.get(ours, metric)
    series.sort(key=lambda each: each.arm != ours)
    unit = series[0].unit
    lines = [
        f"| {metric} | median {unit} | min | max | runs | ours : it |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for each in series:
        ratio = own.median / each.median if own and each.median else None
        shown = f"{ratio:.2f}" if ratio is not None and each is not own else ""
        numbers = (each.median, min(each.values), max(each.values))
        cells = [each.arm, *map(short, numbers), str(len(each.values)), shown]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def short(number: float) -> str:
    """Three figures that count."""
    if number == 0:
        return "0"
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"


@dataclass
class Target:
    """A figure that is to be reached: ``value`` against ``limit``."""

    text: str
    value: float
    limit: float
    at_least: bool = False
    unit: str = "×"

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self):
        sign = "≥" if self.at_least else "≤"
        verdict = "met" if self.is_met else "MISSED"
        limit, value = f"{self.limit:g}{self.unit}", f"{self.value:.2f}{self.unit}"
        return f"target: {self.text} {sign} {limit}: {value} – {verdict}"
