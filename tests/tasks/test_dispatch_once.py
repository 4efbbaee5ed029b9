import json
import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from tasks.management.commands import dispatch_once as command
from tasks.models import BackgroundTask
from tests import services
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
