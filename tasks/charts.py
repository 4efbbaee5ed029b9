"""Bars of a chart, as numbers that the template draws: the content policy allows no inline style,
and bar charts need no library."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120  # as the viewBox in templates/_chart.html
GAP = 0.2  # of a bar's room
LEAST = 2  # of the height: a single failure among thousands must be seen


class Layout(enum.Enum):
    """How the values of one step stand: on, behind or beside each other."""

    STACKED = enum.auto()
    OVERLAID = enum.auto()
    BESIDE = enum.auto()


@dataclass(frozen=True)
class Series:
    """``of`` gives a step's value, or None when there is none. ``key`` names its colour."""

    key: str
    label: str
    of: Callable[..., float | None]


@dataclass(frozen=True)
class Part:
    key: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Bar:
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Row:
    label: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """``top`` is what a bar of full height means; ``ticks`` are times along the axis."""

    key: str
    title: str
    summary: str
    series: tuple[Series, ...]
    top: str
    ticks: tuple[str, ...]
    bars: tuple[Bar, ...]
    rows: tuple[Row, ...]
    is_empty: bool


def bar_chart(
    key: str,
    title: str,
    summary: str,
    series: Sequence[Series],
    steps: Sequence,
    *,
    labels: Sequence[str],
    ticks: Sequence[str],
    layout: Layout,
    shown: Callable[[float], str],
) -> Chart:
    """A bar for each step in which there is something.

    Args:
        steps: at least one, whatever ``of`` of the series understands.
        labels: the name of each step.
        shown: a value in words.
    """
    heights = [[one.of(step) or 0 for one in series] for step in steps]
    top = max((sum(each) if layout is Layout.STACKED else max(each)) for each in heights)
    bars, rows = [], []
    for position, (step, label, values) in enumerate(zip(steps, labels, heights, strict=True)):
        if not any(values):
            continue
        texts = tuple(
            shown(value) if (value := one.of(step)) is not None else "–" for one in series
        )
        named = ", ".join(f"{text} {one.label}" for one, text in zip(series, texts, strict=True))
        parts = _parts(series, values, top, layout, position, WIDTH / len(steps))
        bars.append(Bar(f"{label}: {named}", parts))
        rows.append(Row(label, texts))
    return Chart(
        key=key,
        title=title,
        summary=summary,
        series=tuple(series),
        top=shown(top) if top else "",
        ticks=tuple(ticks),
        bars=tuple(bars),
        rows=tuple(reversed(rows)),
        is_empty=not bars,
    )


def _parts(series, values, top, layout: Layout, position: int, room: float) -> tuple[Part, ...]:
    parts, below = [], 0.0
    left, width = (position + GAP / 2) * room, room * (1 - GAP)
    if layout is Layout.BESIDE:
        width /= len(series)
    for number, (one, value) in enumerate(zip(series, values, strict=True)):
        if not value:
            continue
        height = max(value / top * HEIGHT, LEAST)
        x = left + number * width if layout is Layout.BESIDE else left
        y = max(HEIGHT - below - height, 0)
        parts.append(Part(one.key, round(x, 2), round(y, 2), round(width, 2), round(height, 2)))
        if layout is Layout.STACKED:
            below += height
    return tuple(parts)
