"""Real TeamDesk processes on the test's own database and Redis: workers, beat, web."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from django.db import connection

from teamdesk.embedded import free_port
from tests import services

ROOT = Path(__file__).resolve().parent.parent

# The rhythm of tests: the same code as in production, sooner.
QUICK = {
    "TEAMDESK_ROUND_SECONDS": "0.3",
    "TEAMDESK_RECHECK_SECONDS": "2",
    "TEAMDESK_SHUTDOWN_SECONDS": "1",
}


class Process:
    """One process with its log. ``stop`` asks, ``kill`` does not; both reach its children."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]):
        self.name = name
        self.log = Path(tempfile.mkstemp(prefix=f"{name}-", suffix=".log", dir=services.FOLDER)[1])
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def is_running(self) -> bool:
        return self.popen.poll() is None

    def children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def signal(self, how: int) -> None:
        self.popen.send_signal(how)

    def stop(self, seconds: float = 20) -> int:
        """SIGTERM, then wait. Returns the exit code."""
        if self.is_running():
            self.popen.terminate()
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(f"{self.name} did not end within {seconds} s:\n{self.output[-3000:]}")

    def kill(self) -> None:
        """SIGKILL to the whole process group, as a machine that loses its power would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()


class Processes:
    """Starts processes for one test and ends those that are left."""

    def __init__(self, **environment: str):
        name = connection.settings_dict["NAME"]
        url = os.environ["DATABASE_URL"].replace("/teamdesk?", f"/{name}?")
        self.environment = QUICK | {"DATABASE_URL": url} | environment
        self.running: list[Process] = []

    def start(self, name: str, *command: str, **environment: str) -> Process:
        process = Process(name, list(command), self.environment | environment)
        self.running.append(process)
        return process

    def worker(self, queue: str = "short", include: str = "tests.tasks.kinds", **env) -> Process:
        """A Celery worker that is ready to take messages."""
        process = self.start(
            f"worker-{queue}",
            *(sys.executable, "-m", "celery", "-A", "teamdesk", "worker", "-Q", queue),
            *("-n", f"{queue}-{time.monotonic_ns()}@test", "-c", "2", "-l", "INFO", "-I", include),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            **({"REMAP_SIGTERM": "SIGQUIT"} | env),
        )
        self._until(lambda: " ready." in process.output, process)
        return process

    def beat(self, **env) -> Process:
        return self.start(
            "beat",
            *(sys.executable, "-m", "celery", "-A", "teamdesk", "beat", "--pidfile=", "-l", "INFO"),
            **env,
        )

    def web(self, *options: str, **env) -> tuple[Process, str]:
        """A web server that answers, and its address without the last slash."""
        port = free_port()
        process = self.start(
            "web",
            *(sys.executable, "-m", "gunicorn", "teamdesk.wsgi"),
            *("--config=python:teamdesk.gunicorn", "--workers=1", f"--bind=127.0.0.1:{port}"),
            *options,
            **env,
        )
        address = f"http://127.0.0.1:{port}"

        def answers():
            with contextlib.suppress(OSError):  # also one that answers slowly
                return urllib.request.urlopen(f"{address}/healthz", timeout=5).status == 200
            return False

        self._until(answers, process)
        return process, address

    def end(self) -> None:
        for process in self.running:
            if process.is_running():
                process.kill()

    def _until(self, condition, process: Process, seconds: float = 40) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if not process.is_running() or time.monotonic() > deadline:
                pytest.fail(f"{process.name} is not ready:\n{process.output[-4000:]}")
            time.sleep(0.05)


@pytest.fixture
def processes(transactional_db):
    """Real processes; they end before the test's tables are emptied."""
    running = Processes()
    yield running
    running.end()
