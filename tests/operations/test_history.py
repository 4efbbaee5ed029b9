"""The charts' numbers: every attempt that ended, in the step in which it ended."""

from datetime import timedelta
from itertools import pairwise

import pytest

from tasks.durations import duration
from tasks.models import TaskStatus
from tasks.operations.charts import charts
from tasks.operations.history import SPANS, history

pytestmark = pytest.mark.django_db

HOUR = SPANS[1]


def test_each_attempt_is_counted_once_by_its_outcome(make_task, attempt):
    for outcome in ("completed", "completed", "failed", "lease_expired", "released", "cancelled"):
        attempt(make_task(TaskStatus.COMPLETED), outcome=outcome, ago=600)
    attempt(make_task(TaskStatus.COMPLETED), ago=2 * 3_600)  # before the hour
    steps = history(HOUR)
    assert len(steps) in (60, 61)
    assert sum(step.completed for step in steps) == 2
    assert sum(step.failed for step in steps) == 2
    assert sum(step.handed_back for step in steps) == 2


def test_one_that_began_before_the_hour_and_ended_in_it_is_counted(make_task, attempt):
    attempt(make_task(TaskStatus.COMPLETED), ago=3_000, took=3_600)
    assert sum(step.completed for step in history(HOUR)) == 1


def test_the_wait_is_from_due_to_started_and_the_run_from_started_to_ended(make_task, attempt):
    attempt(make_task(TaskStatus.COMPLETED), ago=600, took=3, waited=7)
    steps = [step for step in history(HOUR) if step.wait_p95 is not None]
    assert [round(step.wait_p95) for step in steps] == [7]
    assert [round(step.run_median) for step in history(HOUR) if step.run_median] == [3]


def test_a_task_that_waits_again_does_not_spoil_the_waits(make_task, attempt):
    """Its row shows when the next attempt may begin, not when the last one might."""
    attempt(make_task(TaskStatus.WAITING), outcome="failed", ago=60, waited=5_000)
    assert [step for step in history(HOUR) if step.wait_p95 is not None] == []


def test_canaries_are_no_work(make_task, attempt):
    attempt(make_task(TaskStatus.COMPLETED, kind="CANARY_SHORT"))
    assert [step for step in history(HOUR) if step.completed or step.wait_p95] == []


def test_no_step_is_left_out_and_they_are_in_order(make_task, attempt):
    for span in SPANS.values():
        steps = history(span)
        gaps = {later.begins_at - one.begins_at for one, later in pairwise(steps)}
        assert gaps == {span.step}
        assert len(steps) * span.step == span.length


def test_bars_stay_inside_the_chart_and_one_failure_among_thousands_is_seen(make_task, attempt):
    steps = history(HOUR)
    steps[10].completed, steps[10].failed = 5_000, 1
    ended = charts(steps, HOUR)[0]
    (bar,) = ended.bars
    assert [part.key for part in bar.parts] == ["completed", "failed"]
    assert all(part.height >= 2 and part.y >= 0 for part in bar.parts)
    assert bar.title.endswith("5000 completed, 1 failed, 0 handed back")


def test_nothing_happened_is_a_chart_too():
    for chart in charts(history(HOUR), HOUR):
        assert chart.is_empty and chart.bars == () and chart.rows == ()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0042, "4 ms"), (2.54, "2.5 s"), (45, "45 s"), (300, "5 min"),
     (timedelta(hours=5).total_seconds(), "5 h"), (timedelta(days=5).total_seconds(), "5 d")],
)  # fmt: skip
def test_durations_are_short(seconds, text):
    assert duration(seconds) == text
