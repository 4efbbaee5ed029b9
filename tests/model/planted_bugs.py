"""The model finds bugs: ``python -m tests.model.planted_bugs`` plants some, one at a time.

Each is a change of the source of one function or constant. It says which promise broke, and after
how many examples; it ends with 1 if a bug survives, or if its place in the source has changed.
First the machine runs on the source as it is, which must pass.
"""

import inspect
import logging
import os
import sys
import textwrap
import time
from contextlib import contextmanager
from importlib import import_module

from tests.model.bugs import BUGS, RARER, Bug


class Gone(Exception):
    """The source is not what the bug was written for: it would prove nothing."""


@contextmanager
def planted(bug: Bug):
    """The bug is in the running program within this block."""
    module_name, _, path = bug.target.partition(":")
    *parents, name = path.split(".")
    module = owner = import_module(module_name)
    try:
        for parent in parents:
            owner = getattr(owner, parent)
        original = vars(owner)[name]
        changed = _changed(bug, name, original, module)
    except (AttributeError, KeyError) as error:
        raise Gone(f"{bug.name}: no {bug.target} any more") from error
    places = [owner] if parents else _holders(name, original)
    for place in places:
        setattr(place, name, changed)
    try:
        yield
    finally:
        for place in places:
            setattr(place, name, original)


def _changed(bug: Bug, name: str, original, module):
    is_text = isinstance(original, str)
    function = getattr(original, "fget", None) or getattr(original, "__func__", original)
    source = original if is_text else textwrap.dedent(inspect.getsource(function))
    old, new = bug.old, bug.new
    if "." in bug.target.partition(":")[2]:  # a method's source was moved to the left
        old, new = (text.replace("\n    ", "\n").removeprefix("    ") for text in (old, new))
    if source.count(old) != 1:
        raise Gone(f"{bug.name}: {bug.target} has {source.count(old)} times {bug.old!r}")
    source = source.replace(old, new)
    if is_text:
        return source
    made: dict = {}
    exec(compile(source, f"<{bug.name}>", "exec"), vars(module), made)
    return made[name]


def _holders(name: str, original) -> list:
    """All modules that imported it by its name."""
    return [each for each in list(sys.modules.values()) if vars(each).get(name) is original]


def hunt(bug: Bug) -> tuple[str, int]:
    """(what broke, examples begun). Raises Gone, or AssertionError if the bug survived."""
    from hypothesis import Phase, settings

    from tests.model import machine
    from tests.model.base import Base

    Base.examples = 0
    quick = settings(machine.chosen(), phases=[Phase.generate], report_multiple_bugs=False)
    with planted(bug):
        try:
            machine.play(quick)
        except Exception as error:
            if isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            crash = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            return getattr(error, "rule", crash), Base.examples
    raise AssertionError(f"{bug.name}: survived {Base.examples} examples")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """With words: the bugs whose names have one of them, the rarer ones too, and no run before."""
    from tests.model import machine, world

    survivors = 0
    named = [bug for bug in BUGS + RARER if any(word in bug.name for word in words)]
    bugs = named if words else BUGS
    with world.arranged():
        if not words:
            started = time.monotonic()
            machine.play()
            say(f"As it is: passed, {time.monotonic() - started:.0f} s")
        for bug in bugs:
            started = time.monotonic()
            try:
                rule, examples = hunt(bug)
                result = f"{rule} ({examples} examples, {time.monotonic() - started:.0f} s)"
            except (AssertionError, Gone) as error:
                survivors += 1
                result = f"NOT CAUGHT: {error}"
            say(f"{bug.name}: {result}")
    say(f"{len(bugs) - survivors} of {len(bugs)} planted bugs were caught.")
    return 1 if survivors else 0


if __name__ == "__main__":
    import tests.services  # noqa: F401  starts PostgreSQL and Valkey, before Django reads its settings

    os.environ["DJANGO_SETTINGS_MODULE"] = "teamdesk.settings"
    import django
    from django.test.utils import setup_databases, setup_test_environment

    django.setup()
    setup_test_environment()
    logging.disable(logging.CRITICAL)
    setup_databases(verbosity=0, interactive=False)
    sys.exit(main(sys.argv[1:]))
