"""What a job costs the transaction that enqueues it. No worker runs."""

from bench.arms import OURS
from bench.measuring import Book
from bench.running import RunningArm

METRIC = "enqueue"
WITH_HAND_OVER = "enqueue and what follows the commit"
BARE = "bare-insert"


def measure(running: RunningArm, book: Book, rows: int) -> None:
    """µs per row of a business transaction with ``rows`` jobs; for ours, beside a bare INSERT of
    the same rows into the same table, one before and one after it."""
    name = running.arm.name
    bare = []
    if running.arm is OURS:
        bare.append(_once(running, rows, bare=True))
    own = _once(running, rows)
    if running.arm is OURS:
        bare.append(_once(running, rows, bare=True))
        book.add(BARE, METRIC, "µs/row", sum(each["committed"] for each in bare) / 2 / rows * 1e6)
    book.add(name, METRIC, "µs/row", own["committed"] / rows * 1e6)
    book.add(name, WITH_HAND_OVER, "µs/row", own["returned"] / rows * 1e6)
    running.clear()


def _once(running: RunningArm, rows: int, bare: bool = False) -> dict[str, float]:
    running.clear()
    return running.ask("rows", rows=rows, bare=bare)
