"""The charts of the operations page."""

from collections.abc import Sequence
from operator import attrgetter

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from tasks.charts import Chart, Layout, Series, bar_chart
from tasks.durations import duration

from .history import Span, Step


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
            layout=Layout.STACKED,
            shown=lambda value: f"{value:g}",
        ),
        _chart_of_times("waits", _("From due to started"), "wait", steps, span),
        _chart_of_times("runs", _("From started to ended"), "run", steps, span),
    ]


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
        layout=Layout.OVERLAID,
        shown=duration,
    )


def _at_most(seconds: list[float]) -> str:
    if not seconds:
        return _("nothing in this time")
    return _("95th percentile at most %(time)s") % {"time": duration(max(seconds))}


def _chart(key, title, summary, series, steps, span, *, layout, shown) -> Chart:
    labels = [_time(step.begins_at, span) for step in steps]
    ticks = (labels[0], labels[len(labels) // 2], _("now"))
    return bar_chart(
        key, title, summary, series, steps, labels=labels, ticks=ticks, layout=layout, shown=shown
    )


def _time(moment, span: Span) -> str:
    local = timezone.localtime(moment)
    if span.hours > 24:
        return f"{date_format(local, 'MONTH_DAY_FORMAT')}, {date_format(local, 'TIME_FORMAT')}"
    return date_format(local, "TIME_FORMAT")
