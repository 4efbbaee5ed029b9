"""The real web in front of a helpdesk: gunicorn, and a client that costs next to nothing."""

import http.client
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil

from bench.exporting.helpdesk import Helpdesk
from bench.processes import ArmFailed, end, start, tail
from teamdesk.embedded import free_port

READY_SECONDS = 60
_CELERY = ("-m", "celery", "--quiet", "-A", "teamdesk")
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_TOKEN = "t" * 32  # of CSRF: cookie and header have to agree, no more


@contextmanager
def running(desk: Helpdesk, *commands: tuple[str, ...]):
    """These commands of Python, until the block ends."""
    processes = [start([sys.executable, *each], desk.environment, desk.log) for each in commands]
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            end(process)


def worker(processes: int) -> tuple[str, ...]:
    """The command of the workers that make exports."""
    options = ("--loglevel=WARNING", "-Q", "long", "-n", "long@%h", f"--concurrency={processes}")
    return (*_CELERY, "worker", *options, *_QUIET)


BEAT = (*_CELERY, "beat", "--pidfile=", "--loglevel=WARNING")


class Web:
    """As the Dockerfile starts it: two processes with four threads each."""

    def __init__(self, process: subprocess.Popen, port: int):
        self.process, self.port = process, port

    @classmethod
    @contextmanager
    def of(cls, desk: Helpdesk):
        port = free_port()
        command = (
            *("-m", "gunicorn", "teamdesk.wsgi", "--config=python:teamdesk.gunicorn"),
            *(f"--bind=127.0.0.1:{port}", "--graceful-timeout=10", "--worker-tmp-dir=/dev/shm"),
        )
        collect_static_files(desk)
        with running(desk, command) as (process,):
            web = cls(process, port)
            deadline = time.monotonic() + READY_SECONDS
            while not web.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ArmFailed(f"The web does not answer:\n{tail(desk.log)}")
                time.sleep(0.1)
            yield web

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in psutil.Process(self.process.pid).children()]

    def is_ready(self) -> bool:
        try:
            return Person(self.port, "").get("/healthz")[0] == 200
        except OSError:
            return False


class Person:
    """A logged-in person on one kept connection."""

    def __init__(self, port: int, session: str):
        self._connection = http.client.HTTPConnection("localhost", port, timeout=120)
        self._headers = {
            "Cookie": f"sessionid={session}; csrftoken={_TOKEN}",
            "Accept-Encoding": "identity",
        }

    def change(self, session: str) -> None:
        """From now on another person."""
        self._headers["Cookie"] = f"sessionid={session}; csrftoken={_TOKEN}"

    def get(self, path: str) -> tuple[int, bytes]:
        response = self._ask("GET", path)
        return response.status, response.read()

    def post(self, path: str, body: str = "") -> tuple[int, bytes]:
        """As a program: JSON."""
        more = {
            "X-CSRFToken": _TOKEN,
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        response = self._ask("POST", path, body, more)
        return response.status, response.read()

    def download(self, path: str, heard=lambda piece: None) -> int:
        """Its bytes are thrown away; ``heard`` sees each piece before. Returns how many came."""
        response = self._ask("GET", path)
        if response.status != 200:
            raise ArmFailed(f"{path} answers {response.status}: {response.read()[:500]}")
        piece, size = memoryview(bytearray(1 << 20)), 0
        while length := response.readinto(piece):
            heard(piece[:length])
            size += length
        return size

    def _ask(self, method: str, path: str, body: str | None = None, more: dict | None = None):
        try:
            self._connection.request(method, path, body, self._headers | (more or {}))
            return self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The server closed a connection that was idle for long; nothing was done on it.
            self._connection.close()
            self._connection.request(method, path, body, self._headers | (more or {}))
            return self._connection.getresponse()


def collect_static_files(desk: Helpdesk) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "django", "collectstatic", "--no-input", "--verbosity=0"],
        env=desk.environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ArmFailed(f"Static files were not collected:\n{done.stderr[-1000:]}")
