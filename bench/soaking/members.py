"""What runs on the stage, and what is known of it: is it well, how long does it take to start."""

import os
import signal
import threading
import time
from pathlib import Path

from teamdesk.embedded import Postgres, Valkey
from teamdesk.processes import Console, Keeper, Process

WAIT_SECONDS = 0.5  # before what ended is started again


class Log(Console):
    """A file in the terminal's place; ``heard`` is called with every line."""

    def __init__(self, path: Path, heard=None):
        super().__init__()
        self.path = path
        self.heard = heard

    def say(self, text: str, name: str = "") -> None:
        with self._lock, self.path.open("a") as file:
            file.write(f"{text}\n")
        if self.heard:
            self.heard(text)


class Member:
    """Mixin: a process or service of the stage.

    It is well when it runs, is ready and is not frozen. ``outages`` are the times when it was not,
    as pairs of seconds since 1970, ``freezes`` those of them in which it was frozen; ``start_ups``
    are the seconds that it took to become ready.
    """

    is_ready = False
    frozen = 0  # by how many freezes at this moment
    started_at = 0.0
    down_since: float | None = None

    def prepare(self, log: Log):
        self.start_ups: list[float] = []
        self.outages: list[tuple[float, float]] = []
        self.freezes: list[tuple[float, float]] = []
        self.ends = 0
        self.keeper = Keeper(self, log, waits=(WAIT_SECONDS,))
        return self

    @property
    def is_well(self) -> bool:
        return self.is_running() and self.is_ready and not self.frozen

    def begins(self) -> None:
        self.is_ready = False
        self.started_at = time.time()

    def becomes_ready(self) -> None:
        if not self.is_ready:
            self.start_ups.append(time.time() - self.started_at)
            self.is_ready = True

    def keep(self, closing: threading.Event) -> None:
        """Until the stage closes: start it again when it ends, write down when it was not well."""
        while not closing.wait(0.05):
            self.keeper.look()
            if self.is_well:
                if self.down_since is not None:
                    self.outages.append((self.down_since, time.time()))
                    self.down_since = None
            elif self.down_since is None:
                self.down_since = time.time()
                self.ends += not self.is_running()

    def signal(self, how: int) -> None:
        self.process.send_signal(how)

    @property
    def pid(self) -> int:
        return self.process.pid


class ProcessMember(Member, Process):
    """Ready once it has written ``ready``. Its output goes into a log of its own."""

    def __init__(self, name, command, folder, environment, logs: Path, ready: str):
        self.ready = ready
        log = Log(logs / f"{name}.log", self._hear)
        super().__init__(name, command, log, folder, environment)
        self.prepare(log)

    def start(self) -> None:
        self.begins()
        self.console.say(f"--- started at {time.strftime('%H:%M:%S')}")
        super().start()

    def _hear(self, line: str) -> None:
        if self.ready in line:
            self.becomes_ready()

    def kill_all(self) -> None:
        """SIGKILL to it and its children at once, as a machine that loses its power would."""
        os.killpg(self.pid, signal.SIGKILL)


class PostgresMember(Member, Postgres):
    def start(self, seconds: float = 60):
        self.begins()
        super().start(seconds)
        self.becomes_ready()
        return self


class ValkeyMember(Member, Valkey):
    """Keeps nothing: it comes back empty."""

    def start(self, seconds: float = 20):
        self.begins()
        super().start(seconds)
        self.becomes_ready()
        return self
