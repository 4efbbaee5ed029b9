"""The processes of a benchmark: those that run, and those that are asked for things."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ArmFailed(Exception):
    """A process of an arm ended or did not get ready; the message has the end of its log."""


def leave_cleanly() -> None:
    """SIGTERM by itself would leave servers and workers behind."""

    def leave(number: int, frame) -> None:
        signal.signal(number, signal.SIG_IGN)  # once: a second would cut the cleaning up short
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


class Answering:
    """Runs ``python -m module``, whose main calls ``answer``; both sides speak lines of JSON."""

    def __init__(self, module: str, name: str, environment: dict[str, str], log: Path):
        self.name, self._log = name, log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, do: str, **request):
        """What it answers to ``do``. Raises ArmFailed."""
        try:
            self._process.stdin.write(json.dumps({"do": do} | request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ArmFailed(f"{self.name} ended:\n{tail(self._log)}")
        return json.loads(line)

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        end(self._process)


def answer(verb: Callable[[str], Callable]) -> None:
    """Until nobody asks any more: ``verb(name)`` is called with the rest of the request."""
    for line in sys.stdin:
        request = json.loads(line)
        found = verb(request.pop("do"))(**request)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def start(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen:
    with log.open("ab") as file:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


def end(process: subprocess.Popen) -> None:
    """It was asked to end; if it does not, it and its children are killed."""
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])
