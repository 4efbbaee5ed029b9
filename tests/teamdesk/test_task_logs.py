"""Every line of a task says of which, in the worker and from the web request on."""

import json
import logging
import re

import pytest

from tasks import correlation
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job, run_jobs
from tests.tasks import kinds as _tasks_kinds  # noqa: F401  registers them
from tests.teamdesk import kinds  # noqa: F401  likewise

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture(params=["line", "json"])
def both(request):
    return request.param


def objects(stream) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.django_db(transaction=True)
def test_every_line_of_a_task_says_of_which(written, both):
    """Also of its handler's own code and of libraries that it calls."""
    stream = written(both)
    token = correlation.request_id.set("proxy-4711")
    task = enqueue("TALKS")
    correlation.request_id.reset(token)
    run_job(task.pk, 0)
    attempt = task.attempts.get()
    said = [
        line
        for line in stream.getvalue().splitlines()
        if "before the work" in line or "after the work" in line
    ]
    assert len(said) == 2
    about = {
        "task": task.pk,
        "run": 0,
        "attempt": 1,
        "execution": str(attempt.execution_id),
        "kind": "TALKS",
        "request_id": "proxy-4711",
    }
    for line in said:
        if both == "json":
            assert about.items() <= json.loads(line).items()
        else:
            assert line.endswith(f"[{' '.join(f'{key}={value}' for key, value in about.items())}]")
    logging.getLogger("x").warning("afterwards")
    assert str(attempt.execution_id) not in stream.getvalue().splitlines()[-1]


@pytest.mark.django_db(transaction=True)
def test_a_failure_is_logged_with_its_attempt(written):
    stream = written("json")
    task = enqueue("FAILS")
    run_job(task.pk, 0)
    (found,) = [each for each in objects(stream) if "on fire" in each["message"]]
    assert (found["task"], found["run"], found["attempt"], found["kind"]) == (
        task.pk,
        0,
        1,
        "FAILS",
    )
    assert found["level"] == "WARNING"


@pytest.mark.django_db(transaction=True)
def test_a_line_before_the_claim_names_the_job_too(written):
    stream = written("json")
    logging.getLogger("tasks").setLevel(logging.INFO)
    run_job(123456, 7)
    (found,) = [each for each in objects(stream) if "does not exist" in each["message"]]
    assert (found["task"], found["run"]) == (123456, 7)


@pytest.mark.django_db(transaction=True)
def test_each_line_of_a_batch_is_about_its_own_task(written):
    """Handlers one after another, effects in one transaction."""
    stream = written("json")
    tasks = [enqueue("TALKS_IN_BATCHES") for _ in range(3)]
    run_jobs([(task.pk, 0) for task in tasks])
    for words in ("before the work", "after the work"):
        said = [each for each in objects(stream) if each["message"] == words]
        assert [each["task"] for each in said] == [task.pk for task in tasks]
        assert all(each["kind"] == "TALKS_IN_BATCHES" and each["execution"] for each in said)
    assert correlation.job.get() == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["PARENT", "PARENT_IN_BATCHES"])
def test_what_a_task_enqueues_belongs_to_the_same_request(kind):
    parents = {}
    for asked in ("proxy-4711", "proxy-4712"):
        token = correlation.request_id.set(asked)
        parents[asked] = enqueue(kind)
        correlation.request_id.reset(token)
    if kind == "PARENT":
        for task in parents.values():
            run_job(task.pk, 0)
    else:
        run_jobs([(task.pk, 0) for task in parents.values()])
    for asked, task in parents.items():
        child = BackgroundTask.objects.get(dedup_key=f"child of {task.pk}")
        assert child.request_id == asked
    assert correlation.request_id.get() == ""


def task_lines(process, task):
    lines = [json.loads(line) for line in process.output.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("task") == task.pk]


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_real_processes_write_objects_celery_included(processes, wait_until):
    worker = processes.worker(include="tests.teamdesk.kinds", TEAMDESK_LOG_FORMAT="json")
    beat = processes.beat(TEAMDESK_LOG_FORMAT="json")
    task = enqueue("TALKS")
    wait_until(lambda: BackgroundTask.objects.get(pk=task.pk).status == TaskStatus.COMPLETED)
    wait_until(lambda: any("succeeded" in line["message"] for line in task_lines(worker, task)))
    lines = task_lines(worker, task)
    talk = next(line for line in lines if line["message"] == "before the work")
    assert talk["logger"] == "some.library"
    assert talk["execution"] == str(task.attempts.get().execution_id)
    celerys = next(line for line in lines if "succeeded" in line["message"])
    assert celerys["logger"].startswith("celery.")
    started = [line for line in beat.output.splitlines() if "Starting" in line]
    assert json.loads(started[0])["logger"] == "celery.beat"
    strange = [
        line
        for line in (worker.output[worker.output.index("{") :] + beat.output).splitlines()
        if line and not line.startswith("{")
    ]
    # Celery's banner is for a terminal; `--quiet` is without.
    assert not any(re.match(r"\[?\d{4}-", line) for line in strange)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_request_can_be_followed_into_the_worker(processes, wait_until, client, alice):
    """The web process names the request; so does the worker's line, from the ledger."""
    worker = processes.worker("long", TEAMDESK_LOG_FORMAT="json", LOG_LEVEL="INFO")
    client.force_login(alice)
    client.post("/exports/new/", headers={"X-Request-ID": "proxy-4711"})
    task = BackgroundTask.objects.get(kind="EXPORT")
    dispatch_once()
    wait_until(lambda: BackgroundTask.objects.get(pk=task.pk).status == TaskStatus.COMPLETED)
    wait_until(lambda: task_lines(worker, task))
    assert {line["request_id"] for line in task_lines(worker, task) if "attempt" in line} == {
        "proxy-4711"
    }
