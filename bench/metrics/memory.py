"""Whether a worker's process grows with the number of tasks it has run."""

import time

from bench.measuring import Book
from bench.metrics.drain import STUCK_SECONDS
from bench.running import RunningArm

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)


def metric(share: float) -> str:
    return f"worker memory after {share:.0%} of the tasks"


def measure(running: RunningArm, book: Book, tasks: int, worker: str) -> None:
    """Resident memory of the larger pool process, on the way through ``tasks`` tasks. They are
    enqueued in five parts, each when the one before is done."""
    running.clear()
    part = tasks // len(SHARES)
    for number, share in enumerate(SHARES):
        running.ask("fill", first=number * part, jobs=part)
        done, moved = 0, time.monotonic()
        while done < part * (number + 1):
            time.sleep(0.5)
            now = running.effects()
            if now > done:
                done, moved = now, time.monotonic()
            elif time.monotonic() - moved > STUCK_SECONDS:
                return  # the count of effects says what was lost
        book.add(running.arm.name, metric(share), "MB", running.memory(worker))
