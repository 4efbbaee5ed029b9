"""manage.py and celery where something is wrong before they can begin: one line, no traceback."""

import os
import subprocess
import sys

import pytest

from tests import services
from tests.processes import ROOT


@pytest.fixture
def nowhere(tmp_path):
    """An environment in which nobody has started the embedded database."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL"}}
    return inherited | {"TEAMDESK_VAR": str(tmp_path)}


def run(*command: str, env) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "command",
    [
        ["import_tickets", "README.md", "--team=support"],
        ["seed_demo"],
        ["createsuperuser", "--no-input", "--username=root", "--email=root@example.org"],
        ["migrate"],
    ],
    ids=lambda command: command[0],
)
def test_a_database_that_nobody_started_is_one_line(nowhere, command):
    done = run("manage.py", *command, env=nowhere)
    assert done.returncode == 1
    assert done.stderr == "manage.py: The database does not answer; is bin/up running?\n"


def test_a_database_of_ones_own_says_why_it_does_not_answer():
    url = f"postgresql://x@/x?host={services.FOLDER}/nowhere"
    done = run("manage.py", "seed_demo", env=os.environ | {"DATABASE_URL": url})
    assert done.returncode == 1
    told = "manage.py: The database that DATABASE_URL names does not answer: connection "
    assert done.stderr.startswith(told)
    assert "No such file or directory" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_traceback_is_there_for_who_asks(nowhere):
    done = run("manage.py", "seed_demo", "--traceback", env=nowhere)
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "OperationalError" in done.stderr


def test_a_fault_of_a_query_is_no_silent_database():
    """It keeps its traceback: somebody must find out."""
    code = "from django.db import connection as c; c.cursor().execute('SET statement_timeout=1;"
    done = run("manage.py", "shell", "-v0", "-c", code + "SELECT pg_sleep(9)')", env=os.environ)
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "does not answer" not in done.stderr


BAD = {"TEAMDESK_BATCH_SIZE": "many"}


@pytest.mark.parametrize("command", ["check", "seed_demo", "runserver"])
def test_bad_settings_are_one_line(command):
    done = run("manage.py", command, env=os.environ | BAD)
    assert done.returncode == 1
    assert done.stderr == "manage.py: TEAMDESK_BATCH_SIZE='many' is not a number.\n"
    done = run("manage.py", command, "--traceback", env=os.environ | BAD)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("command", [["worker", "-Q", "short"], ["beat"]], ids=lambda c: c[0])
def test_bad_settings_are_one_line_for_celery_too(command):
    done = run("-m", "celery", "-A", "teamdesk", *command, env=os.environ | BAD)
    assert done.returncode == 1
    assert done.stderr == "celery: TEAMDESK_BATCH_SIZE='many' is not a number.\n"
