"""Which part is unwell: a backlog, a dead dispatcher and dead workers look different."""

import json
import urllib.error
import urllib.request
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.db.models.functions import Now

from tasks import registry
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, Chore, DispatcherStatus, TaskStatus
from tasks.worker import run_job
from teamdesk import canaries, measures, readiness
from tests import services
from tests.faults.proxy import postgres_proxy, redis_proxy  # noqa: F401  fixtures

CANARY = {queue: registry.CANARIES[queue] for queue in registry.QUEUES}


@pytest.fixture(autouse=True)
def _chores(settings):
    settings.TEAMDESK_CHORES = True


@pytest.fixture
def asked(client):
    """``asked()``: status and content of /readyz."""

    def ask():
        response = client.get("/readyz")
        return response.status_code, response.json()

    return ask


def a_round_succeeds(steady=timedelta(hours=1)):
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.1, {})
    DispatcherStatus.objects.update(steady_since=Now() - steady)


def row(kind, status=TaskStatus.WAITING, ago=0, **fields):
    """A task that was due, and ended if it did, so many seconds ago."""
    then = Now() - timedelta(seconds=ago)
    fields = {"run_at": then, "created_at": then, "updated_at": then} | fields
    if status not in (TaskStatus.WAITING, TaskStatus.RUNNING):
        fields.setdefault("finished_at", then)
    return BackgroundTask.objects.create(kind=kind, status=status, **fields)


def running(kind, ago=0):
    execution = "00000000-0000-4000-8000-000000000000"
    return row(kind, TaskStatus.RUNNING, ago, execution_id=execution)


def canaries_came_back(ago=10):
    for kind in CANARY.values():
        row(kind, TaskStatus.COMPLETED, ago)


pytestmark = pytest.mark.django_db


def test_it_is_ready_when_canaries_come_back(asked):
    a_round_succeeds()
    canaries_came_back()
    status, found = asked()
    assert status == 200
    assert found == {
        "ready": True,
        "database": "ok",
        "redis": "ok",
        "dispatcher": "ok",
        "workers_short": "ok",
        "workers_long": "ok",
    }


def test_dead_workers_are_named_by_their_queue(asked):
    a_round_succeeds()
    canaries_came_back(ago=300)
    row(CANARY["short"], ago=200)
    row(CANARY["long"], ago=5)
    status, found = asked()
    assert status == 503 and found["ready"] is False
    assert found["workers_short"] == (
        "no worker has finished a canary for 300 s and nothing is running"
    )
    assert found["workers_long"] == found["dispatcher"] == found["database"] == "ok"


@pytest.mark.parametrize("life", ["running", "ended"])
def test_a_backlog_is_late_and_not_broken(asked, life):
    """The canary waits its turn behind other work, and workers show that they live."""
    a_round_succeeds()
    canaries_came_back(ago=300)
    row(CANARY["long"], ago=200)
    row("EXPORT", ago=400)
    if life == "running":
        running("EXPORT")
    else:
        row("EXPORT", TaskStatus.COMPLETED, ago=1)
    row(CANARY["short"], TaskStatus.COMPLETED, ago=1)
    status, found = asked()
    assert status == 200 and found["ready"] is True
    late = "backlog: oldest due task waits 400 s, workers are busy"
    assert found["workers_long"] == late
    assert found["warnings"] == [f"workers_long: {late}"]
    assert found["workers_short"] == "ok"


def test_busy_workers_of_the_other_queue_are_no_sign_of_life(asked):
    a_round_succeeds()
    canaries_came_back(ago=300)
    row(CANARY["long"], ago=200)
    row(CANARY["short"], TaskStatus.COMPLETED, ago=1)
    running("REMINDER")
    _, found = asked()
    assert found["workers_long"].startswith("no worker")


def test_a_lease_that_ran_out_is_no_sign_of_life(asked, settings):
    a_round_succeeds()
    canaries_came_back(ago=300)
    row(CANARY["short"], ago=200)
    running("REMINDER", ago=settings.TEAMDESK_LEASE_SECONDS + 1)
    assert asked()[1]["workers_short"].startswith("no worker")


def test_a_task_that_waits_although_canaries_come_back_is_a_warning(asked):
    a_round_succeeds()
    canaries_came_back()
    row("REMINDER", ago=100, dispatched_at=Now())
    status, found = asked()
    assert status == 200
    assert found["warnings"] == [
        "workers_short: backlog: oldest due task waits 100 s, although canaries come back"
    ]


def test_a_canary_that_is_a_little_late_is_no_more_than_late(asked):
    a_round_succeeds()
    canaries_came_back(ago=100)
    row(CANARY["short"], ago=75), row(CANARY["long"], ago=5)
    status, found = asked()
    assert status == 200
    assert found["warnings"] == ["workers_short: backlog: oldest due task waits 75 s"]


def test_a_kind_that_nobody_knows_counts_as_short(asked):
    a_round_succeeds()
    canaries_came_back()
    row("GONE", ago=100)
    assert asked()[1]["workers_short"].startswith("backlog")


def test_a_fresh_start_is_not_red(asked):
    """No canary ever came back; the first has just been inserted."""
    a_round_succeeds(steady=timedelta(seconds=3))
    row(CANARY["short"], ago=2), row(CANARY["long"], ago=2)
    assert asked()[0] == 200


def test_a_start_after_a_weekend_is_not_red(asked):
    """Friday's canary still waits; the dispatcher succeeds for some seconds only."""
    a_round_succeeds(steady=timedelta(seconds=20))
    canaries_came_back(ago=200_000)
    row(CANARY["short"], ago=199_950), row(CANARY["long"], ago=199_950)
    assert asked()[1]["workers_short"].startswith("backlog")
    assert asked()[0] == 200
    DispatcherStatus.objects.update(steady_since=Now() - timedelta(seconds=100))
    assert asked()[0] == 503


def test_a_fresh_start_without_workers_turns_red(asked):
    a_round_succeeds(steady=timedelta(seconds=95))
    row(CANARY["short"], ago=93), row(CANARY["long"], ago=93)
    status, found = asked()
    assert status == 503
    assert found["workers_short"].startswith("no worker has finished a canary for 93 s")


def test_canaries_that_fail_are_none_that_came_back(asked):
    a_round_succeeds()
    canaries_came_back(ago=400)
    for ago in (300, 200, 100):
        row(CANARY["short"], TaskStatus.FAILED, ago)
    row(CANARY["short"], ago=5), row(CANARY["long"], ago=5)
    assert asked()[1]["workers_short"].startswith("no worker has finished a canary for 400 s")


def test_a_canary_that_a_person_cancelled_says_nothing(asked):
    a_round_succeeds()
    canaries_came_back(ago=70)
    row(CANARY["short"], TaskStatus.CANCELLED, ago=69)
    assert asked()[1]["workers_short"] == "ok"


def test_rounds_that_insert_no_canary_are_a_warning(asked):
    """As in a rolling deploy whose beat is still the old one."""
    a_round_succeeds()
    status, found = asked()
    assert status == 200
    assert found["workers_short"] == found["workers_long"] == "unknown: rounds insert no canary"


def test_a_dead_dispatcher_is_named_and_not_the_workers_who_get_nothing(asked):
    a_round_succeeds()
    DispatcherStatus.objects.update(last_succeeded_at=Now() - timedelta(seconds=400))
    canaries_came_back(ago=500)
    row(CANARY["short"], ago=400), row(CANARY["long"], ago=400)
    status, found = asked()
    assert status == 503
    assert found["dispatcher"] == "the last successful round was 400 s ago"
    assert found["workers_short"] == "unknown: no canary can reach them (dispatcher)"
    assert found["warnings"] == [
        "workers_short: unknown: no canary can reach them (dispatcher)",
        "workers_long: unknown: no canary can reach them (dispatcher)",
    ]


def test_a_missing_redis_is_named_and_not_the_workers(asked, settings):
    settings.REDIS_URL = f"unix://{services.FOLDER}/nobody.sock"
    a_round_succeeds()
    canaries_came_back(ago=500)
    row(CANARY["short"], ago=400), row(CANARY["long"], ago=400)
    status, found = asked()
    assert status == 503
    assert found["redis"] == "does not answer"
    assert found["workers_short"] == "unknown: no canary can reach them (redis)"


def test_a_ledger_too_busy_to_be_asked_is_not_a_broken_database(asked, monkeypatch):
    a_round_succeeds()
    monkeypatch.setattr(measures, "ANSWER_MILLISECONDS", 100)
    monkeypatch.setattr(canaries, "_OF_QUEUE", "SELECT pg_sleep(20)")
    status, found = asked()
    assert status == 200
    assert found["workers_short"] == "unknown: the ledger is too busy to be asked"


def test_rounds_are_steady_as_long_as_no_minute_passes_without_success():
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.1, {})
    first = DispatcherStatus.current().steady_since
    DispatcherStatus.objects.update(last_succeeded_at=Now() - timedelta(seconds=50))
    DispatcherStatus.record_success(0.1, {})
    assert DispatcherStatus.current().steady_since == first
    DispatcherStatus.objects.update(last_succeeded_at=Now() - timedelta(seconds=70))
    DispatcherStatus.record_success(0.1, {})
    assert DispatcherStatus.current().steady_since > first


def test_the_command_prints_the_same(capsys):
    a_round_succeeds()
    canaries_came_back()
    row("REMINDER", ago=100)
    call_command("ready")
    assert capsys.readouterr().out == (
        "ready; workers_short: backlog: oldest due task waits 100 s, although canaries come back\n"
    )
    BackgroundTask.objects.all().delete()
    canaries_came_back(ago=300)
    row(CANARY["long"], ago=200)
    row(CANARY["short"], TaskStatus.COMPLETED, ago=1)
    with pytest.raises(CommandError, match=r"^workers_long: no worker has finished a canary for"):
        call_command("ready")


def test_the_command_looks_at_some_parts_alone(capsys):
    a_round_succeeds()
    canaries_came_back(ago=300)
    row(CANARY["long"], ago=200)
    call_command("ready", "dispatcher", "redis")
    assert capsys.readouterr().out == "ready\n"
    with pytest.raises(CommandError, match=r"^workers_long: no worker"):
        call_command("ready", "workers_long", "dispatcher")
    with pytest.raises(CommandError, match=r"^No such part: beat; there are database, redis,"):
        call_command("ready", "beat")


def test_without_chores_workers_are_not_judged(asked, settings):
    settings.TEAMDESK_CHORES = False
    a_round_succeeds()
    assert "workers_short" not in asked()[1]


def test_it_costs_a_fixed_number_of_queries(asked, django_assert_max_num_queries):
    a_round_succeeds()
    canaries_came_back()
    for _ in range(50):
        row("REMINDER"), row("EXPORT")
    with django_assert_max_num_queries(12):  # three questions, each with its limit and savepoint
        asked()


# Whatever hangs


def get(address):
    try:
        # Much longer than it may take: a hang is what this finds.
        return json.load(urllib.request.urlopen(f"{address}/readyz", timeout=20))
    except urllib.error.HTTPError as error:
        return json.load(error)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_frozen_redis_and_a_frozen_postgresql_are_named(
    processes,
    postgres_proxy,  # noqa: F811
    redis_proxy,  # noqa: F811
    wait_until,
):
    """They keep connections open, take what is sent, and answer nothing."""
    _, address = processes.web(DATABASE_URL=postgres_proxy.url, REDIS_URL=redis_proxy.url)
    a_round_succeeds()
    assert get(address)["ready"] is True
    redis_proxy.silence()
    found = get(address)
    assert found["redis"].endswith("does not answer") and found["database"] == "ok"
    postgres_proxy.silence()
    found = get(address)
    assert found["database"].endswith("does not answer")
    assert found["dispatcher"].startswith("unknown")
    assert "still does not answer" in get(address)["database"]
    postgres_proxy.heal(), redis_proxy.heal()
    wait_until(lambda: get(address)["ready"], "it is ready again")


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_real_workers_answer_with_canaries(processes, wait_until):
    """Beat inserts them, workers of both queues finish them; without workers they are missed."""
    processes.beat(TEAMDESK_CHORES="True")
    short = processes.worker("short")
    processes.worker("long")

    def done():
        return set(
            BackgroundTask.objects.filter(
                kind__in=CANARY.values(), status=TaskStatus.COMPLETED
            ).values_list("kind", flat=True)
        )

    wait_until(lambda: done() == set(CANARY.values()), "a canary of each queue", 60)
    wait_until(lambda: readiness.readiness().is_ready)
    assert readiness.readiness().parts["workers_short"] == "ok"
    short.kill()
    # An hour passes for canaries and rounds; then the next canary of the short queue waits.
    hour = timedelta(hours=1)
    BackgroundTask.objects.update(
        created_at=F("created_at") - hour, finished_at=F("finished_at") - hour
    )
    Chore.objects.update(slot_at=F("slot_at") - hour)
    kind = CANARY["short"]
    waiting = BackgroundTask.objects.filter(kind=kind, status=TaskStatus.WAITING)
    wait_until(lambda: waiting.exists())
    waiting.update(created_at=F("created_at") - timedelta(minutes=2))
    DispatcherStatus.objects.update(steady_since=F("steady_since") - hour)
    wait_until(lambda: not readiness.readiness().is_ready)
    found = readiness.readiness()
    assert found.parts["workers_short"].startswith("no worker has finished a canary for 3")
    assert found.parts["workers_long"] == found.parts["dispatcher"] == "ok"
    processes.worker("short")
    wait_until(lambda: readiness.readiness().is_ready, "the new worker finishes it", 60)


@pytest.mark.django_db(transaction=True)
def test_a_canary_is_completed_by_the_worker(settings):
    dispatch_once()
    for task in BackgroundTask.objects.filter(kind__in=CANARY.values()):
        assert run_job(task.pk, 0) == TaskStatus.COMPLETED
    assert readiness.readiness().parts["workers_long"] == "ok"
