"""Processes that the launcher starts, listens to, starts again and stops."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

# In the environment of every process of a launcher, and so of that process's children: what is
# left of a launcher that was killed is found by it, whatever recorded its pids.
MARK = "TEAMDESK_LAUNCHED_FROM"

_WAITS = (0.5, 1, 2, 5, 10, 30)  # seconds before a process that ended is started again
_STEADY_SECONDS = 60  # a process that ran this long has left its trouble behind
_SUSPICIOUS = 3  # ends in a row that a person should hear of


class ServiceError(Exception):
    """Something could not be started; the message says why, for a person."""


class Console:
    """The terminal, shared by all processes line by line. A closed one disturbs nobody."""

    def __init__(self):
        self._lock = threading.Lock()

    def say(self, text: str, name: str = "") -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            for line in text.splitlines() or [""]:
                sys.stdout.write(f"{name:>12} | {line}\n" if name else f"{line}\n")
            sys.stdout.flush()


class Process:
    """A command in a session of its own, so that Ctrl-C in the terminal reaches the launcher alone.

    Its output goes to the console with its name before every line, but for lines with ``unsaid``.
    """

    def __init__(
        self,
        name: str,
        command: list,
        console: Console,
        folder: Path,
        environment: dict[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
        unsaid: str = "",
    ):
        self.name = name
        self.command = [str(part) for part in command]
        self.console = console
        self.folder = folder
        self.environment = environment or {}
        self.pass_fds = pass_fds
        self.unsaid = unsaid
        self.process: subprocess.Popen | None = None
        self._listener: threading.Thread | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=self.pass_fds,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def end(self) -> str:
        return how_it_ended(self.process.returncode)

    def ask_to_stop(self) -> None:
        if self.is_running():
            self.process.terminate()

    def wait(self, seconds: float) -> None:
        """Until it ended; after ``seconds`` it and its children are killed."""
        if self.process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.clear()
        self._listener.join(2)  # its last words

    def hurry(self) -> None:
        if self.is_running():
            self.clear()

    def clear(self) -> None:
        """Kill what is left of its session: it, if it still runs, and its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _listen(self):
        with self.process.stdout as lines:
            for line in lines:
                text = line.decode(errors="replace").rstrip()
                if text and not (self.unsaid and self.unsaid in text):
                    self.console.say(text, self.name)


class Keeper:
    """Starts one process or embedded service again whenever it ends, ever more slowly."""

    def __init__(
        self,
        kept,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        waits: tuple[float, ...] = _WAITS,
    ):
        self.kept = kept
        self.console = console
        self.clock = clock
        self.waits = waits
        self._ends = 0  # in a row
        self._started_at = 0.0
        self._again_at: float | None = None

    def start(self) -> None:
        self._started_at = self.clock()
        self._again_at = None
        self.kept.start()

    def look(self) -> None:
        """Called every moment: notices an end, and starts again when the wait is over."""
        if self._again_at is None:
            if not self.kept.is_running():
                if isinstance(self.kept, Process):
                    self.kept.clear()
                self._wait_after(f"ended ({self.kept.end})")
        elif self.clock() >= self._again_at:
            try:
                self.start()
            except (ServiceError, OSError) as error:
                self._wait_after(f"could not be started: {error}")

    def _wait_after(self, what: str) -> None:
        steady = self.clock() - self._started_at >= _STEADY_SECONDS
        self._ends = 1 if steady else self._ends + 1
        wait = self.waits[min(self._ends, len(self.waits)) - 1]
        self._again_at = self.clock() + wait
        self.console.say(f"{self.kept.name} {what}; it is started again in {wait:g} s.")
        if self._ends >= _SUSPICIOUS:
            self.console.say(
                f"{self.kept.name} KEEPS ENDING: {self._ends} times in a row. "
                "The lines above say why."
            )


def left_behind(mark: str) -> list[int]:
    """Processes that carry ``mark``: what a killed launcher left, or what outlived its parent."""
    wanted = os.fsencode(f"{MARK}={mark}")
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def end(pids: list[int], seconds: float) -> None:
    """Ask all of them to end; after ``seconds`` insist."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while any(command_line(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in pids:
        if command_line(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def command_line(pid: int) -> list[str]:
    """A process's arguments; nothing for one that is gone or dead."""
    try:
        parts = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
    return [os.fsdecode(part) for part in parts[:-1]]


def how_it_ended(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def terminate(pid: int, how: int, seconds: float = 20) -> None:
    """Ask a process that is no child of ours to end; insist after ``seconds``."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
        deadline = time.monotonic() + seconds
        while command_line(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.05)
