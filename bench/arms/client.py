"""The client of one arm, a process of its own: ``python -m bench.arms.client``.

Reads one JSON object per line, ``{"do": NAME, …}``, and answers each with a line of JSON. The
business row of a job is a row of ``bench_orders``, written in the transaction that enqueues it.
"""

import importlib
import os
import random
import time

import django
from django.db import connection, transaction

from bench.processes import answer


class Client:
    def __init__(self, arm):
        self.arm = arm

    def clear(self) -> None:
        """Empty this arm's tables; its queue in Valkey is emptied by the benchmark."""
        tables = (*self.arm.TABLES, "bench_orders", "bench_effects")
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {', '.join(tables)} CASCADE")

    def fill(self, first: int, jobs: int, at_once: int = 1000) -> None:
        """``jobs`` jobs, many in each transaction."""
        for start in range(first, first + jobs, at_once):
            batch = range(start, min(start + at_once, first + jobs))
            with transaction.atomic():
                self._order(batch)
                for job in batch:
                    self.arm.enqueue(job, bulk=True)

    def singles(
        self, first: int, jobs: int, seconds: float = 30, longest_pause: float = 0
    ) -> list[tuple[int, float]]:
        """One job, its effect, the next: (job, when its COMMIT returned, in seconds since 1970).
        Before each a pause of any length up to ``longest_pause`` seconds.

        The effect is waited for by asking every 2 ms, on the same connection, for all arms alike.
        """
        done = []
        for job in range(first, first + jobs):
            time.sleep(random.uniform(0, longest_pause))  # noqa: S311
            moment: list[float] = []
            with transaction.atomic():
                # Registered first, so it runs first: before the arm's own work after the commit.
                transaction.on_commit(lambda moment=moment: moment.append(time.time()))
                self._order([job])
                self.arm.enqueue(job, bulk=False)
            deadline = time.monotonic() + seconds
            while not self._effect_of(job):
                if time.monotonic() > deadline:
                    return done  # the count of effects says what was lost
                time.sleep(0.002)
            done.append((job, moment[0]))
        return done

    def rows(self, rows: int, bare: bool = False) -> dict[str, float]:
        """Seconds that one business transaction with ``rows`` jobs takes: until its COMMIT
        returned, and until the arm's work after the commit was done too."""
        add = self.arm.bare_insert() if bare else None
        committed: list[float] = []
        started = time.perf_counter()
        with transaction.atomic():
            transaction.on_commit(lambda: committed.append(time.perf_counter()))
            self._order([0])
            for job in range(rows):
                add() if bare else self.arm.enqueue(job)
        return {"committed": committed[0] - started, "returned": time.perf_counter() - started}

    def _order(self, jobs) -> None:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO bench_orders (job) VALUES (%s)", [[j] for j in jobs])

    def _effect_of(self, job: int) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM bench_effects WHERE job = %s", [job])
            return cursor.fetchone() is not None


def main() -> None:
    django.setup()
    arm = importlib.import_module(f"bench.arms.{os.environ['BENCH_ARM']}")
    client = Client(arm)
    # What only one arm can do, its module has.
    answer(lambda verb: getattr(client if hasattr(client, verb) else arm, verb))


if __name__ == "__main__":
    main()
