"""Redis keeps its connections open and answers nothing; PostgreSQL is well."""

from datetime import UTC, datetime, timedelta

import pytest
from celery import current_app

from tasks.dispatcher import RoundFault, dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, DispatcherStatus, TaskStatus
from tasks.worker import run_job

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def distant_redis(redis_proxy, settings, monkeypatch):
    """This process's Redis, records and broker alike, is behind the proxy."""
    settings.REDIS_URL = redis_proxy.url
    monkeypatch.setitem(current_app.conf, "broker_url", redis_proxy.url)
    return redis_proxy


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(b"HGETALL", id="while it compares"),
        pytest.param(b"LPUSH", id="while it publishes"),
        pytest.param(b"EVAL", id="while it records"),
        pytest.param(b"ZRANGEBYSCORE", id="while it promotes"),
    ],
)
def test_a_round_does_what_needs_no_redis_and_the_next_one_does_the_rest(
    distant_redis, notes, time_passes, actor, place
):
    dead = enqueue("NOTE")
    Lease.claim(dead.pk, 0)
    time_passes(121)
    tasks = [enqueue("NOTE") for _ in range(3)]
    distant_redis.silence_at(place)
    with pytest.raises(RoundFault, match=r"Redis|broker") as fault:
        actor("dispatcher").start(dispatch_once).result(60)
    assert distant_redis.is_silent()
    assert fault.value.report.recovered == 1
    assert DispatcherStatus.current().last_succeeded_at is None
    stamped = BackgroundTask.objects.filter(dispatched_at__isnull=False).count()
    assert stamped == (3 if place == b"ZRANGEBYSCORE" else 0)
    assert not BackgroundTask.objects.exclude(attempt=0).exclude(pk=dead.pk).exists()

    distant_redis.heal()
    dispatch_once()
    assert not BackgroundTask.objects.filter(dispatched_at=None).exists()
    for task in [dead, *tasks, *tasks]:
        run_job(task.pk, 0)
    assert notes() == [(task.pk, 0) for task in [dead, *tasks]]


def test_a_due_delayed_job_waits_for_the_redis_that_answers(
    distant_redis, notes, actor, monkeypatch
):
    task = enqueue("NOTE", run_at=datetime.now(UTC) + timedelta(days=1))
    dispatch_once()
    distant_redis.silence()
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=datetime.now(UTC))
    with pytest.raises(RoundFault):
        actor("dispatcher").start(dispatch_once).result(60)
    distant_redis.heal()
    monkeypatch.setattr(
        "tasks.dispatcher.database_now", lambda: datetime.now(UTC) + timedelta(days=2)
    )
    assert dispatch_once().promoted == 1
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED


@pytest.mark.processes
def test_a_worker_finishes_without_it_and_takes_more_when_it_heals(
    processes, redis_proxy, notes, wait_until
):
    worker = processes.worker(REDIS_URL=redis_proxy.url)
    running, waiting = enqueue("SLOW", payload={"seconds": 2}), enqueue("NOTE")
    dispatch_once()
    of = BackgroundTask.objects.get
    wait_until(lambda: of(pk=running.pk).status == TaskStatus.RUNNING)
    wait_until(lambda: of(pk=waiting.pk).status == TaskStatus.COMPLETED)
    redis_proxy.silence()
    later = enqueue("NOTE")
    dispatch_once()
    wait_until(lambda: of(pk=running.pk).status == TaskStatus.COMPLETED, "it finishes without")
    assert of(pk=later.pk).status == TaskStatus.WAITING
    redis_proxy.heal()
    wait_until(lambda: of(pk=later.pk).status == TaskStatus.COMPLETED, "it takes more", 90)
    assert notes() == [(task.pk, 0) for task in (running, waiting, later)]
    assert worker.is_running()


@pytest.mark.processes
def test_beat_goes_on_when_it_heals(processes, redis_proxy, notes, wait_until):
    beat = processes.beat(REDIS_URL=redis_proxy.url)
    wait_until(lambda: DispatcherStatus.current().last_succeeded_at, "a first round")
    redis_proxy.silence()
    task = enqueue("NOTE")
    wait_until(lambda: DispatcherStatus.current().last_error, "the round says so")
    assert BackgroundTask.objects.get(pk=task.pk).dispatched_at is None
    redis_proxy.heal()
    wait_until(lambda: BackgroundTask.objects.get(pk=task.pk).dispatched_at, "work goes on")
    assert beat.is_running()
