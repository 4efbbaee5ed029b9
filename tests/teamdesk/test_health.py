"""Probes: alive, ready, metrics."""

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import override_settings
from django.urls import reverse
from redis import Redis

from tasks import registry
from tasks.models import BackgroundTask, DispatcherStatus, TaskStatus
from teamdesk import measures

pytestmark = pytest.mark.django_db


@pytest.fixture
def a_round_succeeded(db):
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.25, {"scanned": 7, "enqueued": 3})


@pytest.fixture
def redis_is_down(settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"


@pytest.fixture
def database_is_down(monkeypatch):
    """The server refuses: what a query meets when PostgreSQL is restarted."""

    def refuse(*args, **kwargs):
        raise OperationalError("connection refused")

    monkeypatch.setattr(connection, "cursor", refuse)


def a_round_succeeded_seconds_ago(seconds):
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.1, {})
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tasks_dispatcherstatus"
            " SET last_succeeded_at = clock_timestamp() - make_interval(secs => %s)",
            [seconds],
        )


# Alive


def test_it_is_alive_for_everybody_without_a_query(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        response = client.get(reverse("healthz"))
    assert response.status_code == 200
    assert response.content == b"ok\n"


def test_it_is_alive_while_database_and_redis_are_down(client, database_is_down, redis_is_down):
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("url", ["/healthz", "/readyz", "/metrics"])
def test_it_answers_a_load_balancer_that_calls_it_by_address(client, a_round_succeeded, url):
    with override_settings(ALLOWED_HOSTS=["help.example.org"], SECURE_SSL_REDIRECT=True):
        assert client.get(url, headers={"host": "10.1.2.3:8000"}).status_code == 200
        assert client.get("/tickets/", headers={"host": "10.1.2.3:8000"}).status_code != 200


@pytest.mark.parametrize("url", ["/healthz", "/readyz", "/metrics"])
def test_it_may_not_be_posted_to_nor_stored(client, a_round_succeeded, url):
    assert client.post(url).status_code == 405
    assert client.get(url)["Cache-Control"] == "no-store"


# Ready


def test_it_is_ready_when_all_is_well(client, a_round_succeeded):
    response = client.get(reverse("readyz"))
    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "database": "ok",
        "redis": "ok",
        "dispatcher": "ok",
    }


def test_it_is_not_ready_before_the_first_round(client):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["dispatcher"] == "no round has succeeded yet"


def test_it_is_ready_until_the_last_success_is_fifteen_seconds_old(client):
    a_round_succeeded_seconds_ago(13)
    assert client.get("/readyz").status_code == 200
    a_round_succeeded_seconds_ago(16)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["dispatcher"] == "the last successful round was 16 s ago"
    assert response.json()["database"] == "ok"


def test_a_failed_round_is_no_success(client):
    a_round_succeeded_seconds_ago(60)
    DispatcherStatus.record_start()
    DispatcherStatus.record_fault(0.1, {}, "Redis did not answer")
    assert client.get("/readyz").status_code == 503


def test_it_names_redis_and_tells_no_address(client, a_round_succeeded, redis_is_down):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["redis"] == "does not answer"
    assert response.json()["database"] == response.json()["dispatcher"] == "ok"
    assert "nobody.sock" not in response.text


def test_it_names_the_database(client, a_round_succeeded, database_is_down):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["database"] == "does not answer"
    assert response.json()["dispatcher"].startswith("unknown")
    assert response.json()["redis"] == "ok"


# Metrics


def measured(client, **options) -> dict[str, float]:
    response = client.get("/metrics", **options)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain")
    lines = (line for line in response.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def ledger_row(status=TaskStatus.WAITING, **values):
    task = BackgroundTask.objects.enqueue("MEASURED")
    ended = status in (TaskStatus.COMPLETED, TaskStatus.FAILED)
    BackgroundTask.objects.filter(pk=task.pk).update(
        status=status, finished_at=task.created_at if ended else None, **values
    )
    return task


@pytest.fixture
def measured_kind():
    registry.handles("MEASURED", queue="long", time_limit=5)(lambda task, lease: None)
    yield
    registry._kinds.pop("MEASURED")


def test_it_counts_tasks_by_kind_and_status(client, measured_kind):
    for status in [TaskStatus.WAITING, TaskStatus.WAITING, TaskStatus.COMPLETED, TaskStatus.FAILED]:
        ledger_row(status)
    ledger_row(dispatched_at="2026-01-01T00:00:00Z")
    found = measured(client)
    assert found['teamdesk_tasks{kind="MEASURED",status="WAITING"}'] == 3
    assert found['teamdesk_tasks{kind="MEASURED",status="COMPLETED"}'] == 1
    assert found['teamdesk_tasks{kind="MEASURED",status="FAILED"}'] == 1
    assert found["teamdesk_tasks_history_counted"] == 1


def test_it_tells_how_long_the_oldest_due_task_waits(client, measured_kind):
    assert measured(client)["teamdesk_oldest_due_seconds"] == 0
    ledger_row(run_at="2999-01-01T00:00:00Z")
    assert measured(client)["teamdesk_oldest_due_seconds"] == 0
    ledger_row(run_at="2026-01-01T00:00:00Z", dispatched_at="2026-01-01T00:00:00Z")
    assert measured(client)["teamdesk_oldest_due_seconds"] > 3600


def test_it_tells_the_queues_lengths_and_the_last_round(
    client, a_round_succeeded, empty_queue: Redis
):
    empty_queue.rpush("long", "a message", "another")
    found = measured(client)
    assert found['teamdesk_queue_length{queue="long"}'] == 2
    assert found['teamdesk_queue_length{queue="short"}'] == 0
    assert found['teamdesk_queue_length{queue="delayed"}'] == 0
    assert found["teamdesk_round_seconds"] == 0.25
    assert found['teamdesk_round_tasks{step="scanned"}'] == 7
    assert 0 <= found["teamdesk_round_success_age_seconds"] < 15
    assert "teamdesk_fast_path_failures_total" in found


def test_it_measures_the_ledger_while_redis_is_down(client, a_round_succeeded, redis_is_down):
    found = measured(client)
    assert found["teamdesk_redis_up"] == 0
    assert found["teamdesk_database_up"] == 1
    assert "teamdesk_round_seconds" in found
    assert 'teamdesk_queue_length{queue="long"}' not in found


def test_it_measures_the_queue_while_the_database_is_down(client, database_is_down):
    found = measured(client)
    assert found["teamdesk_database_up"] == 0
    assert found["teamdesk_redis_up"] == 1
    assert 'teamdesk_queue_length{queue="long"}' in found


def test_a_history_too_long_to_count_is_left_out(client, measured_kind, monkeypatch):
    ledger_row()
    monkeypatch.setattr(measures, "ANSWER_MILLISECONDS", 50)
    monkeypatch.setattr(measures, "_ENDED", "SELECT pg_sleep(30)")
    found = measured(client)
    assert found["teamdesk_tasks_history_counted"] == 0
    assert found['teamdesk_tasks{kind="MEASURED",status="WAITING"}'] == 1


def test_metrics_cost_a_fixed_number_of_queries(
    client, measured_kind, django_assert_num_queries, django_assert_max_num_queries
):
    for _ in range(20):
        ledger_row()
    with django_assert_max_num_queries(20) as captured:
        measured(client)
    for _ in range(20):
        ledger_row()
    with django_assert_num_queries(len(captured)):
        measured(client)


def test_metrics_are_for_this_machine_unless_a_token_is_set(client):
    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="::1").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.7").status_code == 404
    assert client.get("/metrics", REMOTE_ADDR="").status_code == 404


def test_metrics_are_not_for_those_behind_a_proxy_on_this_machine(client):
    assert client.get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 404
    with override_settings(SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https")):
        assert client.get("/metrics").status_code == 404


@override_settings(TEAMDESK_METRICS_TOKEN="secret")
def test_metrics_are_for_whoever_has_the_token(client):
    token = {"Authorization": "Bearer secret"}
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.7", headers=token).status_code == 200
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 404


def test_the_command_says_that_all_is_well(capsys, a_round_succeeded):
    call_command("ready")
    assert capsys.readouterr().out == "ready\n"


def test_the_command_fails_with_the_reason(a_round_succeeded, redis_is_down):
    with pytest.raises(CommandError, match=r"^redis: does not answer$"):
        call_command("ready")
