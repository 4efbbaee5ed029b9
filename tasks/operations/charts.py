"""Bars of a chart, as numbers that the template draws: the content policy allows no inline style,
and three bar charts need no library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from .history import Span, Step

WIDTH, HEIGHT = 600, 120  # as the viewBox in templates/operations/_chart.html
GAP = 0.2  # of a bar's room


@dataclass(frozen=True)
class Series:
    """``of`` gives a step's value, or None when there is none. ``key`` names its colour."""

    key: str
    label: str
    of: Callable[[Step], float | None]


@dataclass(frozen=True)
class Part:
    key: str
    y: float
    height: float


@dataclass(frozen=True)
class Bar:
    x: float
    width: float
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


def charts(steps: Sequence[Step], span: Span) -> list[Chart]:
    completed, failed = sum(s.completed for s in steps), sum(s.failed for s in steps)
    ended = _("Attempts completed: %(completed)d, failed: %(failed)d") % {
        "completed": completed,
        "failed": failed,
    }
    return [
        _chart(
            "ended",
            _("Attempts that ended"),
            ended,
            [
                Series("completed", _("completed"), lambda step: step.completed),
                Series("failed", _("failed"), lambda step: step.failed),
                Series("handed-back", _("handed back"), lambda step: step.handed_back),
            ],
            steps,
            span,
            is_stacked=True,
            shown=lambda value: f"{value:g}",
        ),
        _chart_of_times("waits", _("From due to started"), "wait", steps, span),
        _chart_of_times("runs", _("From started to ended"), "run", steps, span),
    ]


def duration(seconds: float | None) -> str:
    """``4 ms``, ``2.5 s``, ``3 min``, ``2 h``, ``5 d``; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return _("%(count)d ms") % {"count": round(seconds * 1000)}
    if seconds < 10:
        return _("%(count).1f s") % {"count": seconds}
    if seconds < 120:
        return _("%(count)d s") % {"count": round(seconds)}
    if seconds < 7_200:
        return _("%(count)d min") % {"count": round(seconds / 60)}
    if seconds < 172_800:
        return _("%(count)d h") % {"count": round(seconds / 3_600)}
    return _("%(count)d d") % {"count": round(seconds / 86_400)}


def _chart_of_times(key: str, title: str, what: str, steps: Sequence[Step], span: Span) -> Chart:
    """``what`` took its time: "wait" or "run", as the fields of a step name it."""
    p95, median = attrgetter(f"{what}_p95"), attrgetter(f"{what}_median")
    return _chart(
        key,
        title,
        _at_most([p95(step) for step in steps if p95(step) is not None]),
        [Series("p95", _("95th percentile"), p95), Series("median", _("median"), median)],
        steps,
        span,
        is_stacked=False,
        shown=duration,
    )


def _at_most(seconds: list[float]) -> str:
    if not seconds:
        return _("nothing in this time")
    return _("95th percentile at most %(time)s") % {"time": duration(max(seconds))}


def _chart(key, title, summary, series, steps, span, *, is_stacked, shown) -> Chart:
    heights = [[one.of(step) or 0 for one in series] for step in steps]
    top = max((sum(each) if is_stacked else max(each)) for each in heights)
    room = WIDTH / len(steps)
    bars, rows = [], []
    for position, (step, values) in enumerate(zip(steps, heights, strict=True)):
        label = _time(step.begins_at, span)
        texts = tuple(
            shown(value) if (value := one.of(step)) is not None else "–" for one in series
        )
        if any(values):
            named = ", ".join(
                f"{text} {one.label}" for one, text in zip(series, texts, strict=True)
            )
            bars.append(
                Bar(
                    x=round((position + GAP / 2) * room, 2),
                    width=round(room * (1 - GAP), 2),
                    title=f"{label}: {named}",
                    parts=_parts(series, values, top, is_stacked),
                )
            )
            rows.append(Row(label, texts))
    middle = steps[len(steps) // 2]
    return Chart(
        key=key,
        title=title,
        summary=summary,
        series=tuple(series),
        top=shown(top) if top else "",
        ticks=(_time(steps[0].begins_at, span), _time(middle.begins_at, span), _("now")),
        bars=tuple(bars),
        rows=tuple(reversed(rows)),
        is_empty=not bars,
    )


def _parts(series, values, top, is_stacked) -> tuple[Part, ...]:
    parts, below = [], 0.0
    for one, value in zip(series, values, strict=True):
        if not value:
            continue
        # A single failure among thousands must be seen.
        height = max(value / top * HEIGHT, 2)
        parts.append(Part(one.key, round(max(HEIGHT - below - height, 0), 2), round(height, 2)))
        if is_stacked:
            below += height
    return tuple(parts)


def _time(moment, span: Span) -> str:
    local = timezone.localtime(moment)
    if span.hours > 24:
        return f"{date_format(local, 'MONTH_DAY_FORMAT')}, {date_format(local, 'TIME_FORMAT')}"
    return date_format(local, "TIME_FORMAT")
