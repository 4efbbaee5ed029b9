"""How fast many jobs that wait already are done."""

import signal
import time

from bench.measuring import Book
from bench.running import RunningArm

METRIC = "drain"
STUCK_SECONDS = 45  # without one more effect: what is missing then is lost


def measure(running: RunningArm, book: Book, jobs: int) -> None:
    """The workers run and are stopped (SIGSTOP) while the queue is filled, so that no arm pays for
    its start. The time counts from their release to the commit of the last effect."""
    running.ask("clear")
    running.signal(signal.SIGSTOP)
    try:
        running.ask("fill", first=0, jobs=jobs)
        running.connection.execute("CHECKPOINT")
        (released,) = running.connection.execute("SELECT clock_timestamp()").fetchone()
    finally:
        running.signal(signal.SIGCONT)
    done = _wait_for(running, jobs)
    (last,) = running.connection.execute(
        "SELECT max(pg_xact_commit_timestamp(xmin)) FROM bench_effects"
    ).fetchone()
    if last:
        seconds = (last - released).total_seconds()
        book.add(running.arm.name, METRIC, "jobs/s", done / seconds)


def _wait_for(running: RunningArm, jobs: int) -> int:
    done, moved = 0, time.monotonic()
    while done < jobs and time.monotonic() - moved < STUCK_SECONDS:
        time.sleep(0.1)
        now = running.effects()
        if now > done:
            done, moved = now, time.monotonic()
    return done
