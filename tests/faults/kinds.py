"""Kinds that only the named faults need, also loaded by real workers (``celery -I``).

Those of ``tests/tasks/kinds.py`` come with them.
"""

import os
import signal
import time
from pathlib import Path

from tasks import registry
from tasks.registry import Kind, handles
from tests.tasks.kinds import write_note


def use(monkeypatch, name: str, handler, **policy) -> None:
    """What kind ``name`` does in this test, in this process."""
    monkeypatch.setitem(registry._kinds, name, Kind(name, handler, **policy))


# --- Errors of any shape --------------------------------------------------------------------------


class _Unprintable(str):
    """A text that cannot be made. Only of this kind, so that test reports can be."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


UNPRINTABLE = _Unprintable("?")


class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class NoTextAtAll(Exception):
    """Even asking for its text ends the process, if one lets it."""

    def __str__(self):
        raise SystemExit("no text")

    __repr__ = __str__


class NoStringAsText(Exception):
    def __str__(self):
        return 42


def _chained(depth: int) -> Exception:
    error = ValueError("the first cause " + "x" * 100_000)
    for number in range(depth):
        following = ValueError(f"because of {number} " + "x" * 100_000)
        following.__cause__ = error
        error = following
    return error


def _deep(depth: int) -> Exception:
    """Its traceback has ``depth`` frames, each of another line than the one before."""
    namespace = {}
    lines = ["def dive(depth):", "    if not depth: raise ValueError('the bottom')"]
    lines += [f"    if depth % 50 == {n}: return dive(depth - 1)" for n in range(50)]
    exec(compile("\n".join(lines), "sea" * 100, "exec"), namespace)
    try:
        namespace["dive"](depth)
    except ValueError as error:
        return error
    raise AssertionError("unreachable")


_RAISED = {
    "50 MB": lambda: ValueError("x" * 50_000_000),
    "50 MB of NUL": lambda: ValueError("\0" * 50_000_000),
    "50 MB of bytes": lambda: ValueError(b"\0" * 12_500_000),  # four characters each in its text
    "NUL": lambda: ValueError("a\0b"),
    "lone surrogate": lambda: ValueError("\ud800"),
    "many lines": lambda: ValueError("line\r\n" * 1_000_000),
    "empty": lambda: ValueError(),
    "no text": NoText,
    "no text at all": NoTextAtAll,
    "no string as text": NoStringAsText,
    "argument without text": lambda: ValueError(NoText(), UNPRINTABLE),
    "group": lambda: ExceptionGroup("many", [NoText(), ValueError("x" * 5_000_000)] * 100),
    "base group": lambda: BaseExceptionGroup("all", [SystemExit(1), KeyboardInterrupt(), NoText()]),
    "nested groups": lambda: _nested(100),
    "chain": lambda: _chained(200),
    "deep": lambda: _deep(900),
    "long name": lambda: type("E" * 1_000_000, (Exception,), {})("short"),
}
SHAPES = list(_RAISED)
SHOWN = dict.fromkeys(SHAPES, "ValueError: ") | {
    "50 MB": "ValueError: xxx",
    "50 MB of NUL": "ValueError: ���",
    "50 MB of bytes": r"ValueError: b'\x00",
    "NUL": "ValueError: a�b",
    "lone surrogate": "ValueError: ?",
    "empty": "ValueError",
    "no text": "NoText: (its text could not be made)",
    "no text at all": "NoTextAtAll: (its text could not be made)",
    "no string as text": "NoStringAsText: (its text could not be made)",
    "argument without text": "ValueError: (its text could not be made)",
    "group": "ExceptionGroup: many (200 sub-exceptions)",
    "base group": "BaseExceptionGroup: all (3 sub-exceptions)",
    "nested groups": "ExceptionGroup: level 0",
    "chain": "ValueError: because of 199",
    "deep": "ValueError: the bottom",
    "long name": "EEE",
}


def _nested(depth: int) -> Exception:
    error = ValueError("the innermost")
    for level in reversed(range(depth)):
        error = ExceptionGroup(f"level {level}", [error])
    return error


@handles("RAISES", ladder=(60, 300))
def raises(task, lease):
    """Raises an error of ``payload["shape"]``, itself or as its effect."""

    def raise_it():
        write_note(task)
        raise _RAISED[task.payload["shape"]]()

    if task.payload.get("in") == "effect":
        return raise_it
    raise _RAISED[task.payload["shape"]]()


# --- Handlers that a test holds and lets go -------------------------------------------------------


def _say_that_it_started(task) -> None:
    with (Path(task.payload["folder"]) / "starts").open("a") as starts:
        starts.write(f"{task.pk} {task.run} {task.attempt} {os.getpid()}\n")


@handles("HELD", time_limit=600, ladder=(60, 300))
def held(task, lease):
    """Says that it started, then works until it is let go. It looks at nothing else meanwhile, like
    a handler that waits for an answer of the outside world. The fixture ``held`` lets it go."""
    _say_that_it_started(task)
    folder = Path(task.payload["folder"])
    while not (folder / f"go-{task.pk}-{task.run}-{task.attempt}").exists():
        time.sleep(0.02)
    return lambda: write_note(task)


handles("LONG_HELD", queue="long", time_limit=600, ladder=(60, 300))(held)
handles("HELD_BATCH", time_limit=600, ladder=(60, 300), batch=50)(held)


@handles("DEADLY", ladder=(60, 300))
def deadly(task, lease):
    """Kills the process that runs it."""
    _say_that_it_started(task)
    os.kill(os.getpid(), signal.SIGKILL)


@handles("DEADLY_BATCH", ladder=(60, 300), batch=10)
def deadly_batch(task, lease):
    """Travels with others; kills the process that runs them if ``payload["kills"]``."""
    _say_that_it_started(task)
    if task.payload["kills"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return lambda: write_note(task)
