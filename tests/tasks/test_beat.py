"""Celery beat, the real process: rounds in its own process, with and without Redis."""

from datetime import timedelta

import pytest
from django.db.models import F

from tasks import registry
from tasks.models import BackgroundTask, Chore, DispatcherStatus
from tasks.worker import run_job
from tests import services

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def dispatched(task):
    task.refresh_from_db()
    return task.dispatched_at


def test_it_dispatches_and_leaves_cleanly(processes, notes, wait_until):
    beat = processes.beat()
    task = BackgroundTask.objects.enqueue("NOTE")
    wait_until(lambda: dispatched(task))
    assert beat.stop(10) == 0


def test_two_beats_share_the_work(processes, notes, wait_until, empty_queue):
    beats = [processes.beat(), processes.beat()]
    for beat in beats:
        wait_until(lambda beat=beat: "beat: Starting" in beat.output)
    for _ in range(20):
        task = BackgroundTask.objects.enqueue("NOTE")
        wait_until(lambda task=task: dispatched(task))
    assert empty_queue.llen("short") == 20
    assert all(beat.is_running() for beat in beats)


def test_it_outlives_a_redis_that_is_not_there(processes, notes, wait_until):
    nowhere = f"unix://{services.FOLDER}/nobody.sock"
    beat = processes.beat(REDIS_URL=nowhere)
    task = BackgroundTask.objects.enqueue("NOTE")
    wait_until(lambda: DispatcherStatus.current().last_error)
    assert "Redis" in DispatcherStatus.current().last_error
    assert beat.is_running()
    assert dispatched(task) is None


def test_two_beats_insert_one_task_per_slot(processes, wait_until):
    """Each chore that is known, a canary a minute to a pruning a day; four slots of each."""
    chores = sorted(name for name, kind in registry.kinds().items() if kind.every)
    beats = [processes.beat(TEAMDESK_CHORES="True") for _ in range(2)]
    for beat in beats:
        wait_until(lambda beat=beat: "beat: Starting" in beat.output)
    tasks = BackgroundTask.objects.order_by("kind", "id")
    wait_until(lambda: tasks.filter(dispatched_at__isnull=False).count() == len(chores))
    assert [task.kind for task in tasks.all()] == chores
    for _ in range(3):
        ended = {task.pk for task in tasks.all()}
        for task in tasks.filter(status="WAITING"):
            run_job(task.pk, 0)
        Chore.objects.update(slot_at=F("slot_at") - timedelta(days=1))
        fresh = tasks.exclude(pk__in=ended)
        handed_over = fresh.filter(dispatched_at__isnull=False)
        wait_until(lambda rows=handed_over: rows.count() == len(chores))
        assert [task.kind for task in fresh.all()] == chores
    assert tasks.count() == 4 * len(chores)
    assert all(beat.is_running() for beat in beats)
