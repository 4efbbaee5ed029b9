"""The stage: a whole TeamDesk in a temporary folder, on durable services of its own."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.soaking.members import WAIT_SECONDS, Log, PostgresMember, ProcessMember, ValkeyMember
from teamdesk.embedded import database_url, free_port, redis_url
from teamdesk.processes import MARK, end, left_behind

ROOT = Path(__file__).resolve().parent.parent.parent

# The same code as in production, sooner: a run of 90 s sees leases expire.
LEASE_SECONDS, ROUND_SECONDS, RECHECK_SECONDS = 6.0, 0.5, 5.0
RHYTHM = {
    "TEAMDESK_LEASE_SECONDS": str(LEASE_SECONDS),
    "TEAMDESK_RENEWAL_SECONDS": "1",
    "TEAMDESK_ROUND_SECONDS": str(ROUND_SECONDS),
    "TEAMDESK_ROUND_BUDGET_SECONDS": "1",
    "TEAMDESK_RECHECK_SECONDS": str(RECHECK_SECONDS),
    "TEAMDESK_SHUTDOWN_SECONDS": "2",
}
_CELERY = ("-m", "celery", "--quiet", "-A", "teamdesk")


class Stage:
    """Made by ``open``; ``close`` ends everything that it started. Sets this process's environment
    for Django's settings, which are not to be read before."""

    def __init__(self, mail_port: int):
        self.folder = Path(tempfile.mkdtemp(prefix="teamdesk-soak-"))
        self.folder.chmod(0o755)  # PostgreSQL runs as another user when we are root
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.closing = threading.Event()
        self._threads: list[threading.Thread] = []
        os.environ.update(
            RHYTHM
            | {
                "DJANGO_SETTINGS_MODULE": "bench.soaking.settings",
                "DATABASE_URL": database_url(self.folder),
                "REDIS_URL": redis_url(self.folder),
                "TEAMDESK_VAR": str(self.folder),
                "DEBUG": "False",
                "SECRET_KEY": secrets.token_urlsafe(48),
                "ALLOWED_HOSTS": "127.0.0.1",
                "TEAMDESK_SECURE_COOKIES": "False",
                "EMAIL_URL": f"smtp://127.0.0.1:{mail_port}",
                "TEAMDESK_URL": self.address,
            }
        )
        # Durable, unlike the tests' PostgreSQL: what was answered must survive its crash.
        self.postgres = PostgresMember(self.folder, {"fsync": "on", "synchronous_commit": "on"})
        self.valkey = ValkeyMember(self.folder, {"appendonly": "no"})
        for service in (self.postgres, self.valkey):
            service.prepare(Log(self.logs / "services.log"))
        self.web = self._process(
            "web",
            *("-m", "gunicorn", "teamdesk.wsgi", "--config=python:teamdesk.gunicorn"),
            *(f"--bind=127.0.0.1:{self.port}", "--graceful-timeout=5"),
            ready="Booting worker",
        )
        # What a sleeping process of the long one had is taken over while it sleeps.
        self.workers = [self._worker("short", 2), self._worker("long", 4)]
        self.beats = [
            self._process(f"beat-{number}", *_CELERY, "beat", "-l", "INFO", ready="Starting")
            for number in (1, 2)
        ]

    @property
    def members(self) -> list:
        return [self.postgres, self.valkey, self.web, *self.workers, *self.beats]

    def open(self) -> None:
        """Services first, then the tables, then the processes. Raises if any of it fails."""
        for service in (self.postgres, self.valkey):
            service.keeper.start()
        for command in (["migrate", "--no-input", "-v0"], ["collectstatic", "--no-input", "-v0"]):
            subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, check=True)
        for member in (self.web, *self.workers, *self.beats):
            member.keeper.start()
        for member in self.members:
            thread = threading.Thread(target=member.keep, args=[self.closing], name=member.name)
            thread.start()
            self._threads.append(thread)
        self.wait_until_well()

    def wait_until_well(self, seconds: float = 120) -> None:
        """Until every member is. Raises TimeoutError with the names of those that are not."""
        deadline = time.monotonic() + seconds
        while unwell := [member.name for member in self.members if not member.is_well]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Not well within {seconds:.0f} s: {', '.join(unwell)}")
            time.sleep(0.1)

    @property
    def start_up_seconds(self) -> float:
        """The longest time from an end to being ready again that was seen here, on this machine and
        under this load."""
        return WAIT_SECONDS + max(max(member.start_ups, default=0) for member in self.members)

    def lines_with(self, text: str) -> int:
        """In the processes' logs."""
        return sum(log.read_text(errors="replace").count(text) for log in self.logs.glob("*.log"))

    def close(self, keep_logs: bool = False) -> None:
        self.closing.set()
        for thread in self._threads:
            thread.join()
        processes = [self.web, *self.workers, *self.beats]
        for member in processes:
            member.ask_to_stop()
        for member in processes:
            member.wait(15)
        end(left_behind(str(self.folder)), 1)
        self.valkey.stop()
        self.postgres.stop()
        if not keep_logs:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _worker(self, queue: str, processes: int) -> ProcessMember:
        return self._process(
            f"worker-{queue}",
            *(*_CELERY, "worker", "-l", "INFO", "-Q", queue, "-n", f"{queue}@soak"),
            *(f"--concurrency={processes}", "--without-gossip", "--without-mingle"),
            "--without-heartbeat",
            ready=" ready.",
            REMAP_SIGTERM="SIGQUIT",
        )

    def _process(self, name: str, *arguments: str, ready: str, **environment) -> ProcessMember:
        command = [sys.executable, *arguments]
        environment |= {MARK: str(self.folder), "PYTHONUNBUFFERED": "1"}
        return ProcessMember(name, command, ROOT, environment, self.logs, ready)
