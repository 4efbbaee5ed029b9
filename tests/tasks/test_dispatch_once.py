import json
import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.backends.signals import connection_created
from django.db.models import F
from django.db.models.functions import Now

from tasks.dispatcher import Report
from tasks.management.commands import dispatch_once as command
from tasks.models import BackgroundTask, DispatcherStatus
from tasks.transactions import set_session_limits
from tests import services
from tests.faults.proxy import postgres_proxy  # noqa: F401  a fixture
from tests.processes import ROOT

KEYS = [
    *("scanned", "enqueued", "rechecked", "readded", "promoted", "recovered", "failed", "purged"),
    *("seconds", "fault"),
]


def test_it_prints_what_it_did(notes, capsys):
    BackgroundTask.objects.enqueue("NOTE")
    call_command("dispatch_once")
    assert "enqueued 1" in capsys.readouterr().out


def test_it_prints_json(notes, capsys):
    BackgroundTask.objects.enqueue("NOTE")
    call_command("dispatch_once", "--json")
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == KEYS
    assert (printed["enqueued"], printed["fault"]) == (1, None)


def test_a_fault_is_exit_1_with_the_reason(notes, settings, capsys):
    settings.REDIS_URL = f"unix://{services.FOLDER}/nobody.sock"
    BackgroundTask.objects.enqueue("NOTE")
    with pytest.raises(CommandError, match="Redis") as error:
        call_command("dispatch_once", "--json")
    assert error.value.returncode == 1
    assert "Redis" in json.loads(capsys.readouterr().out)["fault"]


@pytest.mark.django_db(transaction=True)
def test_it_is_skipped_with_75_while_another_round_goes_on(
    notes, round_under_way, monkeypatch, capsys
):
    monkeypatch.setattr(command, "WAIT_SECONDS", 0.2)
    BackgroundTask.objects.enqueue("NOTE")
    finish = round_under_way()
    with pytest.raises(CommandError) as error:
        call_command("dispatch_once")
    assert capsys.readouterr().out == "skipped\n"
    assert error.value.returncode == 75
    with pytest.raises(CommandError):
        call_command("dispatch_once", "--json")
    assert json.loads(capsys.readouterr().out)["fault"] == "skipped"
    finish()


@pytest.mark.processes
def test_a_database_that_is_down_is_a_clear_message():
    environment = {"DATABASE_URL": f"postgresql://x@/x?host={services.FOLDER}/nowhere"}
    done = subprocess.run(
        [sys.executable, "manage.py", "dispatch_once"],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "database" in done.stderr.lower()
    assert "Traceback" not in done.stderr


# --limit


def handed_over(capsys, *options):
    call_command("dispatch_once", "--json", *options)
    printed = json.loads(capsys.readouterr().out)
    return printed["enqueued"], printed["readded"], printed["promoted"]


def test_a_limit_leaves_the_rest_to_the_next_round(notes, capsys, empty_queue, settings):
    settings.TEAMDESK_BATCH_SIZE = 2
    for _ in range(5):
        BackgroundTask.objects.enqueue("NOTE")
    assert handed_over(capsys, "--limit=3") == (3, 0, 0)
    assert empty_queue.llen("short") == 3
    assert BackgroundTask.objects.filter(dispatched_at=None).count() == 2
    assert handed_over(capsys, "--limit=3") == (2, 0, 0)
    assert empty_queue.llen("short") == 5


def test_a_limit_counts_what_is_handed_over_again(notes, capsys, empty_queue):
    for _ in range(4):
        BackgroundTask.objects.enqueue("NOTE")
    call_command("dispatch_once")
    empty_queue.flushall()  # Redis lost everything
    BackgroundTask.objects.update(dispatched_at=F("dispatched_at") - timedelta(hours=1))
    capsys.readouterr()
    assert handed_over(capsys, "--limit=3") == (0, 3, 0)
    assert empty_queue.llen("short") == 3


def test_a_limit_counts_what_is_promoted(notes, capsys, empty_queue):
    soon = Now() + timedelta(hours=1)
    for _ in range(3):
        task = BackgroundTask.objects.enqueue("NOTE")
        BackgroundTask.objects.filter(pk=task.pk).update(run_at=soon)
    call_command("dispatch_once")
    BackgroundTask.objects.update(run_at=Now() - timedelta(seconds=1))
    past = BackgroundTask.objects.first().run_at.timestamp() * 1_000_000
    for task in BackgroundTask.objects.all():
        empty_queue.zadd("teamdesk:delayed", {task.job_id: past})
    capsys.readouterr()
    assert handed_over(capsys, "--limit=2") == (0, 0, 2)
    assert handed_over(capsys, "--limit=2") == (0, 0, 1)


def test_what_needs_no_hand_over_does_not_use_the_limit_up(notes, capsys, empty_queue):
    for _ in range(3):
        BackgroundTask.objects.enqueue("NOTE")
    call_command("dispatch_once")
    BackgroundTask.objects.update(dispatched_at=F("dispatched_at") - timedelta(hours=1))
    lost = BackgroundTask.objects.last()
    empty_queue.delete(f"teamdesk:job:{lost.job_id}")
    capsys.readouterr()
    assert handed_over(capsys, "--limit=1") == (0, 1, 0)


@pytest.mark.parametrize(
    "option",
    ["--limit=0", "--limit=-1", "--limit=many", "--limit=1.5", "--loop=0", "--loop=-1",
     "--loop=often", "--loop=nan", "--loop=inf"],
)  # fmt: skip
def test_nonsense_is_refused(db, option):
    with pytest.raises(CommandError, match="is no number of"):
        call_command("dispatch_once", option)
    assert DispatcherStatus.current().last_started_at is None


# Its connections


@pytest.mark.django_db(transaction=True)
def test_every_connection_of_its_has_limits(monkeypatch):
    """The one it works on, new or old, and the one that holds the round's lock."""

    def limits(of):
        with of.cursor() as cursor:
            cursor.execute("SELECT current_setting('lock_timeout')")
            return cursor.fetchone()[0]

    found = []

    def a_round(**options):
        found.append(limits(connection))
        other = connection.copy()
        found.append(limits(other))
        other.close()
        connection.close()
        found.append(limits(connection))
        return Report()

    monkeypatch.setattr(command, "dispatch_once", a_round)
    connection.ensure_connection()
    call_command("dispatch_once")
    assert found == ["5s", "5s", "5s"]
    connection.close()
    assert limits(connection) == "0"  # whoever called it is left alone
    assert set_session_limits not in [ref() for _, ref, *_ in connection_created.receivers]


# --loop


@pytest.fixture
def loop(processes):
    """``loop(*options)``: the real command, round after round."""

    def start(*options, **environment):
        manage = (sys.executable, "-u", "manage.py", "dispatch_once", "--loop", "0.2", "--json")
        return processes.start("loop", *manage, *options, **environment)

    return start


def rounds(process):
    lines = [line for line in process.output.splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


@pytest.mark.processes
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_runs_rounds_until_it_is_asked_to_leave(loop, notes, wait_until, empty_queue, how):
    process = loop("--limit=1")
    for _ in range(3):
        BackgroundTask.objects.enqueue("NOTE")
    wait_until(lambda: not BackgroundTask.objects.filter(dispatched_at=None).exists())
    process.signal(how)
    assert process.popen.wait(20) == 0
    assert "Traceback" not in process.output
    assert [each["enqueued"] for each in rounds(process) if each["enqueued"]] == [1, 1, 1]
    assert all(each["fault"] is None for each in rounds(process))
    assert list(rounds(process)[0]) == KEYS


@pytest.mark.processes
def test_a_fault_is_logged_and_the_next_round_tries_again(loop, notes, wait_until):
    process = loop(REDIS_URL=f"unix://{services.FOLDER}/nobody.sock")
    wait_until(lambda: len(rounds(process)) >= 3)
    assert process.is_running()
    assert all("Redis" in each["fault"] for each in rounds(process))
    assert "Round incomplete" in process.output
    assert process.stop() == 0


@pytest.mark.processes
def test_it_outlives_a_database_that_is_gone_for_a_while(
    loop,
    wait_until,
    postgres_proxy,  # noqa: F811
):
    process = loop(DATABASE_URL=postgres_proxy.url)
    wait_until(lambda: rounds(process) and rounds(process)[-1]["fault"] is None)
    postgres_proxy.cut()
    wait_until(lambda: rounds(process)[-1]["fault"])
    postgres_proxy.heal()
    wait_until(lambda: rounds(process)[-1]["fault"] is None, "it works again")
    assert process.stop() == 0


@pytest.mark.processes
def test_two_loops_take_turns(loop, notes, wait_until, empty_queue):
    first, second = loop(), loop()
    wait_until(lambda: rounds(first) and rounds(second))
    for _ in range(10):
        BackgroundTask.objects.enqueue("NOTE")
    wait_until(lambda: not BackgroundTask.objects.filter(dispatched_at=None).exists())
    assert (first.stop(), second.stop()) == (0, 0)
    assert empty_queue.llen("short") == 10
    faults = {each["fault"] for each in rounds(first) + rounds(second)}
    assert faults <= {None, "skipped"}
