"""Redis really down: not a mock, the server is killed and comes back empty."""

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from exports.models import ExportChunk
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tests import services
from tests.processes import ROOT
from tickets.models import Notification, Ticket

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def dispatch_once(environment):
    return subprocess.run(
        [sys.executable, "manage.py", "dispatch_once", "--json"],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def within(seconds, work):
    """The result of ``work()``, which must not hang on the dead server."""
    result = []
    thread = threading.Thread(target=lambda: result.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert result, f"no answer within {seconds} s"
    return result[0]


@pytest.fixture
def left_behind(alice, bob):
    """What recovery and purge have to do meanwhile: a dead worker's lease and an expired result."""
    from exports.models import Export

    old = Export.objects.request(by=alice, filters={})
    assert run_job(old.pk, 0) == TaskStatus.COMPLETED
    BackgroundTask.objects.filter(pk=old.pk).update(expires_at=Now() - timedelta(hours=2))
    dead = Export.objects.request(by=bob, filters={})
    Lease.claim(dead.pk, 0)
    BackgroundTask.objects.filter(pk=dead.pk).update(updated_at=Now() - timedelta(seconds=121))
    return old, dead


def test_what_was_accepted_while_redis_was_down_is_done_after_it_is_back(
    processes, visitor, alice, bob, support, wait_until, left_behind
):
    old, dead = left_behind
    _, address = processes.web(TEAMDESK_FAST_PATH="True")
    agent = visitor(address, "alice")

    with services.valkey_killed():
        made = within(
            3,
            lambda: agent.submit(
                "/tickets/new/",
                team=support.pk,
                subject="The lift is stuck",
                priority="high",
                assignee=bob.pk,
                due_at="2020-01-01T08:00",  # past: reminds at once
            ),
        )
        assert made.status_code == 302, made.text
        ticket = Ticket.objects.get()
        accepted = within(3, lambda: agent.submit("/exports/new/", as_json=True))
        assert accepted.status_code == 202

        done = dispatch_once(processes.environment)
        assert done.returncode == 1
        assert "Redis" in done.stderr
        report = json.loads(done.stdout)
        assert "Redis" in report["fault"]
        assert report["recovered"] == 1
        assert report["purged"] >= 1
        assert not ExportChunk.objects.filter(export=old.pk).exists()
        assert BackgroundTask.objects.get(pk=dead.pk).status == TaskStatus.WAITING

        export = BackgroundTask.objects.get(pk=accepted.json()["id"])
        reminder = ticket.background_tasks.get(kind="REMINDER")
        for task in (export, reminder):
            assert (task.status, task.attempt, task.dispatched_at) == ("WAITING", 0, None)

    # It is back, and empty. The enqueue comes first, the stamp after it.
    assert services.redis_client().dbsize() == 0
    done = dispatch_once(processes.environment)
    assert done.returncode == 0, done.stderr
    assert services.redis_client().llen("long") >= 1
    assert services.redis_client().llen("short") >= 1
    for task in (export, reminder):
        task.refresh_from_db()
        assert task.dispatched_at is not None

    processes.worker("short")
    processes.worker("long")
    processes.beat()
    wait_until(lambda: agent.ask(f"/exports/{export.pk}/")["status"] == TaskStatus.COMPLETED)
    wait_until(lambda: Notification.objects.filter(kind="reminder").count() == 2)
    told = Notification.objects.filter(kind="reminder", ticket=ticket)
    assert {notification.user.username for notification in told} == {"alice", "bob"}
    file = agent.see(f"/exports/{export.pk}/download/")
    assert file.status_code == 200
    assert "The lift is stuck" in file.content.decode("utf-8-sig")
