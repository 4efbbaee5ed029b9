"""What a quiet system costs: nothing is enqueued, all its processes run."""

import time

from bench.measuring import Book
from bench.running import RunningArm

QUERIES = "idle, queries"
SETTLE_SECONDS = 6  # what the last jobs left to be done is done: two of our rounds
CPU = "idle, CPU"  # of its processes, PostgreSQL and Valkey

# The statements of the arm's database, but for those of this very connection.
_CALLS = """
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s
JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = current_database() AND query NOT LIKE '%pg_stat_statements%'
"""


def measure(running: RunningArm, book: Book, seconds: float) -> None:
    time.sleep(SETTLE_SECONDS)
    name = running.arm.name
    connection = running.connection
    before = connection.execute(_CALLS).fetchone()[0]
    cpu = running.cpu_seconds() + running.stage.cpu_seconds()
    started = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - started
    cpu = running.cpu_seconds() + running.stage.cpu_seconds() - cpu
    calls = connection.execute(_CALLS).fetchone()[0] - before
    book.add(name, QUERIES, "per s", calls / took)
    book.add(name, CPU, "s per min", cpu / took * 60)
