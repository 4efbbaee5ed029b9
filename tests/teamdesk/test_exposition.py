"""Metrics of several processes: all that share a folder are shown together, to whom may see."""

import re
import urllib.error
import urllib.request

import pytest

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from teamdesk.embedded import free_port
from teamdesk.exposition import may_read
from tests.teamdesk import kinds  # noqa: F401  registers them

enqueue = BackgroundTask.objects.enqueue


def scrape(url, token=None) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20)
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = (line for line in answer.read().decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_web_shows_what_worker_and_beat_counted(processes, wait_until, tmp_path):
    """As bin/up runs them: one folder, two children of one worker, a beat, a web process."""
    shared = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    worker = processes.worker(include="tests.teamdesk.kinds", **shared)
    processes.beat(**shared)
    _, address = processes.web(**shared)
    tasks = [enqueue("COUNTED") for _ in range(6)] + [
        enqueue("COUNTED", payload={"hopeless": True})
    ]
    completed = BackgroundTask.objects.filter(status=TaskStatus.COMPLETED)
    wait_until(lambda: completed.count() == 6)
    wait_until(lambda: BackgroundTask.objects.get(pk=tasks[-1].pk).status == TaskStatus.FAILED)

    def shown():
        found = scrape(f"{address}/metrics")
        done = 'teamdesk_task_attempts_total{kind="other",outcome="completed"}'
        # The web process does not know the tests' kinds; the worker does, and its label counts.
        counted = 'teamdesk_task_attempts_total{kind="COUNTED",outcome="completed"}'
        return found if found.get(counted) == 6 and not found.get(done) else None

    found = wait_until(shown)
    assert found['teamdesk_dead_letters_total{kind="COUNTED"}'] == 1
    assert found['teamdesk_task_run_seconds_count{kind="COUNTED"}'] == 7
    assert found['teamdesk_handed_over_total{step="enqueued"}'] == 7
    assert found['teamdesk_rounds_total{result="success"}'] >= 1
    assert found['teamdesk_tasks{kind="other",status="COMPLETED"}'] == 6
    worker.kill()
    again = scrape(f"{address}/metrics")  # what a dead process counted still counts
    assert again['teamdesk_task_attempts_total{kind="COUNTED",outcome="completed"}'] == 6


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_worker_shows_its_own_on_a_port(processes, wait_until, tmp_path):
    port = free_port()
    worker = processes.worker(
        include="tests.teamdesk.kinds",
        PROMETHEUS_MULTIPROC_DIR=str(tmp_path),
        TEAMDESK_METRICS_PORT=str(port),
        TEAMDESK_METRICS_TOKEN="secret",
    )
    task = enqueue("COUNTED")
    dispatch_once()
    wait_until(lambda: BackgroundTask.objects.get(pk=task.pk).status == TaskStatus.COMPLETED)
    url = f"http://127.0.0.1:{port}/metrics"
    wait_until(
        lambda: (
            scrape(url, "secret")[
                'teamdesk_task_attempts_total{kind="COUNTED",outcome="completed"}'
            ]
            == 1
        )
    )
    for refused in (url, url.replace("/metrics", "/")):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            scrape(refused)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(url, "wrong")
    # A second worker of this machine finds the port taken, says so, and works all the same.
    second = processes.worker(
        PROMETHEUS_MULTIPROC_DIR=str(tmp_path), TEAMDESK_METRICS_PORT=str(port)
    )
    assert f"No metrics on 127.0.0.1 port {port}" in second.output
    assert worker.is_running() and second.is_running()


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_beat_shows_its_own_on_a_port(processes, wait_until):
    port = free_port()
    processes.beat(TEAMDESK_METRICS_PORT=str(port))

    def rounds():
        try:
            found = scrape(f"http://127.0.0.1:{port}/metrics")
        except urllib.error.URLError:
            return 0
        return found['teamdesk_rounds_total{result="success"}']

    wait_until(lambda: rounds() >= 2)


@pytest.mark.processes
def test_a_worker_that_would_show_one_of_its_processes_does_not_start(processes):
    worker = processes.start(
        "worker",
        *("python", "-m", "celery", "-A", "teamdesk", "worker", "-Q", "short"),
        TEAMDESK_METRICS_PORT="9999",
    )
    assert worker.popen.wait(60) != 0
    assert re.search(r"^celery: .*needs PROMETHEUS_MULTIPROC_DIR", worker.output, re.MULTILINE)
    assert "Traceback" not in worker.output


@pytest.mark.parametrize(
    ("address", "sent", "proxied", "allowed"),
    [
        ("127.0.0.1", "", False, True),
        ("::1", "", False, True),
        ("127.0.0.1", "", True, False),
        ("192.0.2.7", "", False, False),
        ("", "", False, False),
    ],
)
def test_without_a_token_it_is_for_this_machine(address, sent, proxied, allowed):
    assert may_read(address, sent, proxied) is allowed


def test_with_a_token_it_is_for_whoever_has_it(settings):
    settings.TEAMDESK_METRICS_TOKEN = "secret"
    assert may_read("192.0.2.7", "Bearer secret", True)
    assert not may_read("127.0.0.1", "", False)
    assert not may_read("127.0.0.1", "Bearer wröng", False)
