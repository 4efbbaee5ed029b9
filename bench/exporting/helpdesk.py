"""A helpdesk of the benchmark: its database, and the processes that work on it."""

import threading
from contextlib import contextmanager

import psutil

from bench.arms import Arm
from bench.processes import Answering
from bench.stage import Stage

_OWN_TABLES = "tasks_backgroundtask, tickets_notification"  # with all that hangs on them


class Helpdesk:
    """``tickets`` tickets in a database of its own."""

    def __init__(self, stage: Stage, tickets: int, number: int):
        self.stage, self.tickets = stage, tickets
        self.arm = Arm(
            f"exports of {tickets}",
            module=f"exports_{tickets}",
            settings="teamdesk.settings",
            commands=(),
            redis_db=number,
            polls=False,
        )
        self.log = stage.folder / f"{self.arm.module}.log"

    @property
    def environment(self) -> dict[str, str]:
        return self.stage.environment(self.arm) | {
            "TEAMDESK_SECURE_COOKIES": "False",
            "REMAP_SIGTERM": "SIGQUIT",
        }

    def open(self) -> None:
        """Make its tables and tickets."""
        self.stage.prepare(self.arm)
        with self.process("fill") as process:
            found = process.ask("fill", tickets=self.tickets)
        if found != self.tickets:
            raise AssertionError(f"{found} tickets were made, not {self.tickets}")

    @contextmanager
    def process(self, name: str):
        """One like a worker's, which does what it is asked."""
        environment = self.environment | {"PGAPPNAME": f"bench {name}"}
        process = Answering("bench.exporting.worker", name, environment, self.log)
        try:
            yield process
        finally:
            process.close()

    def forget(self) -> None:
        """No exports, and all written: what came before costs nothing now."""
        with self.stage.connect(self.arm) as connection:
            connection.execute(f"TRUNCATE {_OWN_TABLES} CASCADE")
            connection.execute("CHECKPOINT")

    def clear(self) -> None:
        """No messages either. Not while workers run: their queues would be gone, too."""
        self.forget()
        with self.stage.valkey_client(self.arm.redis_db) as client:
            client.flushdb()


class Peak:
    """Resident MB of processes together: ``before``, and at most while it is open. Looked at every
    10 ms."""

    SECONDS = 0.01

    def __init__(self, *pids: int):
        self._processes = [psutil.Process(pid) for pid in pids]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.before = self.most = self._now()
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    @property
    def growth(self) -> float:
        return self.most - self.before

    def _watch(self) -> None:
        while not self._over.wait(self.SECONDS):
            self.most = max(self.most, self._now())

    def _now(self) -> float:
        return sum(process.memory_info().rss for process in self._processes) / 1024**2
