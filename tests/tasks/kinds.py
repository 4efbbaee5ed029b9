"""Kinds for tests, also loaded by the real workers of the end-to-end tests (``celery -I``).

Their database effect is a row in a table of notes, so that "once" can be counted.
"""

import gc
import os
import signal
import time

from django.db import connection

from tasks.registry import PermanentFailure, handles


def write_note(task):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO test_notes (task, run, execution) VALUES (%s, %s, %s)",
            [task.pk, task.run, task.execution_id],
        )


@handles("NOTE", ladder=(60, 300))
def note(task, lease):
    return lambda: write_note(task)


@handles("LONG_NOTE", queue="long", time_limit=600)
def long_note(task, lease):
    return lambda: write_note(task)


@handles("SLOW", time_limit=600)
def slow(task, lease):
    """Works for ``payload["seconds"]``, looking at its lease as it goes."""
    deadline = time.monotonic() + task.payload["seconds"]
    while time.monotonic() < deadline:
        lease.check()
        time.sleep(0.05)
    return lambda: write_note(task)


def stay(task, lease):
    """Its first attempt works until its worker is shut down; the next one is done at once."""
    while task.attempt == 1:
        lease.check()
        time.sleep(0.05)
    return lambda: write_note(task)


@handles("STAYS", time_limit=600)
def stays(task, lease):
    return stay(task, lease)


@handles("LONG_STAYS", queue="long", time_limit=600)
def long_stays(task, lease):
    return stay(task, lease)


@handles("SUICIDE", ladder=(0.1,))
def suicide(task, lease):
    os.kill(os.getpid(), signal.SIGKILL)


@handles("HANGS", time_limit=0.5, ladder=())
def hangs(task, lease):
    time.sleep(3600)


@handles("FAILS", ladder=(60, 300))
def fails(task, lease):
    raise ConnectionError(task.payload.get("text", "the printer is on fire"))


@handles("HOPELESS")
def hopeless(task, lease):
    raise PermanentFailure("The address does not exist.")


@handles("QUICK_NOTE", time_limit=60, ladder=(60, 300), batch=10)
def quick_note(task, lease):
    """Notes that travel together. ``payload["does"]``: what this one does otherwise."""
    does = task.payload.get("does")
    if does == "fails":
        raise ConnectionError("the printer is on fire")
    if does == "is hopeless":
        raise PermanentFailure("The address does not exist.")
    if does == "kills its worker":
        os.kill(os.getpid(), signal.SIGKILL)
    if does == "is slow":
        return slow(task, lease)

    def effect():
        write_note(task)
        if does == "has a bad effect":
            raise ValueError("after the write")

    return effect


@handles("COUNTS_OBJECTS")
def counts_objects(task, lease):
    """Says how many objects its process leaves out of its garbage collections, and how many not."""
    raise PermanentFailure(f"{gc.get_freeze_count()} {len(gc.get_objects())}")
