"""bin/up's launcher with real processes: it becomes ready, keeps everything running, and leaves
nothing behind."""

import contextlib
import errno
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import psutil
import pytest

from teamdesk import premises
from teamdesk.processes import left_behind
from tests import services

ROOT = Path(__file__).resolve().parent.parent.parent


class Up:
    """One run of the launcher, with its data in ``var`` and its output in a file."""

    def __init__(self, var: Path, *options: str, **environment: str):
        self.var = var
        self.log = Path(tempfile.mkstemp(prefix="up-", suffix=".log", dir=var.parent)[1])
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DATABASE_URL", "REDIS_URL"}
        }
        self.environment = inherited | {"TEAMDESK_VAR": str(var)} | environment
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "teamdesk.launcher", "--port=0", *options],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def address(self) -> str | None:
        """Once it has said that it is ready."""
        found = re.findall(r"^TeamDesk is ready at (http://127\.0\.0\.1:\d+/)$", self.output, re.M)
        return found[-1] if found else None

    def ready(self) -> bool:
        if self.process.poll() is not None:
            pytest.fail(f"It ended with {self.process.returncode}:\n{self.output[-4000:]}")
        return bool(self.address)

    def get(self, path: str) -> int:
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(self.address + path, timeout=5).status
        return 0

    def manage(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
        )

    def all_processes(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def part(self, *words: str) -> psutil.Process | None:
        """Its own child whose command line has these words."""
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                line = child.cmdline()
                if all(any(word in argument for argument in line) for word in words):
                    return child
        return None

    def finish(self) -> None:
        """For a test that failed: nothing may outlive it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        if self.process.poll() is None:
            for process in self.all_processes():
                process.kill()
            self.process.kill()
            self.process.wait()


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Without the dead that nobody has reaped yet."""

    def lives(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    return [process for process in processes if lives(process)]


@pytest.fixture
def up():
    """Starts a launcher; the test's end is its end."""
    folder = Path(tempfile.mkdtemp(prefix="up-", dir=services.FOLDER))
    folder.chmod(0o755)
    running = []

    def start(*options, **environment):
        running.append(Up(folder / "var", *options, **environment))
        return running[-1]

    yield start
    for one in running:
        one.finish()


COUNT_TICKETS = "from tickets.models import Ticket; print(Ticket.objects.count())"
ON_THE_TESTS_SERVICES = {
    "DATABASE_URL": os.environ["DATABASE_URL"],
    "REDIS_URL": os.environ["REDIS_URL"],
}


@pytest.mark.processes
def test_it_loads_demo_data_once_and_tells_the_log_ins(up, wait_until):
    first = up()
    wait_until(first.ready, "readiness", 60)
    assert "Loading demo data" in first.output
    told = first.output.partition("TeamDesk is ready")[2]
    assert "Demo log-ins (password: teamdesk-demo):" in told
    assert re.search(r"^  alice +lead of Support", told, re.MULTILINE)
    counted = first.manage("shell", "-v0", "-c", COUNT_TICKETS)
    assert int(counted.stdout) > 100, counted.stderr
    first.process.terminate()
    assert first.process.wait(60) == 0

    second = up()
    wait_until(second.ready, "readiness", 60)
    assert "Loading demo data" not in second.output
    assert "Demo log-ins (password: teamdesk-demo):" in second.output
    assert second.manage("shell", "-v0", "-c", COUNT_TICKETS).stdout == counted.stdout


@pytest.mark.processes
def test_it_serves_keeps_everything_running_and_is_the_only_one(up, wait_until):
    one = up("--no-demo")
    wait_until(one.ready, "readiness", 60)
    assert "demo" not in one.output.lower()
    assert one.get("healthz") == 200
    assert one.get("accounts/login/") == 200
    wait_until(lambda: one.get("readyz") == 200, "the first round")

    # Another terminal, told nothing.
    done = one.manage("dispatch_once")
    assert done.returncode == 0, done.stderr
    assert "scanned" in done.stdout
    assert one.manage("ready").stdout == "ready\n"

    # A second one on the same folder refuses and disturbs nothing.
    second = up()
    assert second.process.wait(30) == 1
    assert f"TeamDesk already runs from this folder (process {one.process.pid}, " in second.output

    # What ends is started again: a worker, the web server, Redis, the database.
    for words in (["worker", "short"], ["gunicorn"], ["valkey-server"], ["postgres", "-D"]):
        victim = wait_until(lambda words=words: one.part(*words), f"{words}")
        victim.kill()
        wait_until(
            lambda words=words, victim=victim: (one.part(*words) or victim).pid != victim.pid,
            f"another {words}",
        )
    assert "worker-short ended (signal SIGKILL); it is started again" in one.output
    wait_until(lambda: one.get("readyz") == 200, "readiness after the kills")
    assert "Traceback" not in second.output


@pytest.mark.processes
def test_sigterm_stops_all_its_processes_and_only_those(up, wait_until):
    code = "import time; time.sleep(600)"
    bystander = subprocess.Popen([sys.executable, "-c", code, "-m", "celery", "-A", "teamdesk"])
    try:
        one = up("--no-demo", **ON_THE_TESTS_SERVICES)
        wait_until(one.ready, "readiness", 60)
        assert "Starting postgres" not in one.output
        assert "Starting valkey" not in one.output
        everyone = 1 + 2 + (1 + 2) + (1 + 1) + 1  # web, workers with their pools, beat
        wait_until(lambda: len(one.all_processes()) >= everyone, "all processes")
        processes = one.all_processes()
        one.process.terminate()
        assert one.process.wait(60) == 0
        assert one.output.rstrip().endswith("Stopped.")
        assert "Hitting Ctrl+C" not in one.output, "celery's advice is not for this terminal"
        assert alive(processes) == []
        assert bystander.poll() is None
        assert services.postgres.is_running()
        assert services.valkey.is_running()
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.processes
def test_what_a_killed_launcher_left_is_stopped_and_a_second_ctrl_c_hurries(up, wait_until):
    first = up("--no-demo", TEAMDESK_SHUTDOWN_SECONDS="1000", **ON_THE_TESTS_SERVICES)
    wait_until(first.ready, "readiness", 60)
    orphans = first.all_processes()
    first.process.kill()
    first.process.wait()
    assert alive(orphans)

    second = up("--no-demo", TEAMDESK_SHUTDOWN_SECONDS="1000", **ON_THE_TESTS_SERVICES)
    wait_until(second.ready, "readiness", 60)
    assert "that an earlier start left behind" in second.output
    assert alive(orphans) == []

    # A frozen worker does not leave when asked; its time would be 1000 seconds and more.
    frozen = wait_until(lambda: second.part("worker", "long"), "the worker")
    processes = second.all_processes()
    frozen.suspend()
    second.process.send_signal(signal.SIGINT)
    wait_until(lambda: not second.part("gunicorn"), "the web server's end")
    assert second.process.poll() is None
    second.process.send_signal(signal.SIGINT)
    assert second.process.wait(30) == 0
    assert alive(processes) == []


@pytest.mark.processes
def test_it_stops_what_it_started_when_the_database_cannot_be_reached(up):
    one = up(DATABASE_URL="postgresql://nobody@/none?host=/nowhere")
    assert one.process.wait(60) == 1
    assert "Starting valkey" in one.output
    assert "bin/up: migrate failed (exit status 1); its lines above say why." in one.output
    assert left_behind(str(one.var)) == []
    assert not (one.var / "run" / "valkey.sock").exists()


# Refusals come before anything is started, and never as a traceback.


@pytest.mark.parametrize(
    ("environment", "options", "complaint"),
    [
        ({"DEBUG": "False", "SECRET_KEY": ""}, [], "SECRET_KEY must be set when DEBUG=False"),
        ({"TEAMDESK_VAR": "/proc/teamdesk"}, [], "/proc/teamdesk cannot be used: "),
        ({"TEAMDESK_VAR": "/dev/null"}, [], "/dev/null cannot be used: "),
        ({}, ["--port=70000"], "“70000” is no port"),
        ({"TEAMDESK_VAR": "README.md"}, [], "README.md cannot be used: it is not a folder. Move"),
        ({"TEAMDESK_VAR": "README.md/var"}, [], "var cannot be used: Not a directory\n"),
        ({}, ["--port=http"], "argument --port: “http” is no port; use 1 to 65535, or 0"),
    ],
)
def test_it_says_what_is_wrong(up, environment, options, complaint):
    one = up(*options, **environment)
    assert one.process.wait(30) in (1, 2)
    assert complaint in one.output
    assert "Traceback" not in one.output
    assert "Starting" not in one.output
    assert "Errno" not in one.output


def test_a_port_in_use_is_said_before_anything_is_started(up):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        one = up(f"--port={port}")
        assert one.process.wait(30) == 1
    assert f"Port {port} of 127.0.0.1 is in use by another program" in one.output
    assert "Starting" not in one.output
    assert not (one.var / "postgres").exists()


def test_a_full_disk_is_said_before_anything_is_started(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 3 * 1024**2})
    monkeypatch.setattr(premises.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(premises.Refusal, match=r"has 3 MB free; 200 MB are needed"):
        premises.take_folder(tmp_path / "var")


def test_a_port_that_this_user_may_not_use_is_said(monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(premises.socket, "create_server", refuse)
    with pytest.raises(premises.Refusal, match=r"Port 80 .* may not be used by this user"):
        premises.take_port(80)
