"""An arm on the stage: its processes and its client."""

import contextlib
import os
import subprocess
import time

import psutil

from bench.arms import Arm, python
from bench.processes import Answering, ArmFailed, end, start, tail
from bench.stage import Stage, cpu_seconds

READY_SECONDS = 90
WARM_UP = 1_000_000_000  # jobs from this number on warm up and are not counted


class RunningArm:
    """Starts with ``with RunningArm(stage, arm) as running``: then its client answers. Its workers
    run between ``start`` and ``stop``."""

    def __init__(self, stage: Stage, arm: Arm):
        self.stage, self.arm = stage, arm
        self.workers: dict[str, subprocess.Popen] = {}
        self.log = stage.folder / f"{arm.name.replace(' ', '-')}.log"

    def __enter__(self):
        self.stage.prepare(self.arm)
        self.connection = self.stage.connect(self.arm)
        self.client = Answering(
            "bench.arms.client",
            f"The client of {self.arm.name}",
            self._environment("client"),
            self.log,
        )
        self.clear()
        return self

    def __exit__(self, *error):
        self.stop()
        self.client.close()
        self.connection.close()

    def ask(self, do: str, **request):
        """What the client answers to ``do``. Raises ArmFailed."""
        return self.client.ask(do, **request)

    def clear(self) -> None:
        """Nothing enqueued, nothing done, and all written: what came before costs nothing now."""
        self.ask("clear")
        with self.stage.valkey_client(self.arm.redis_db) as client:
            client.flushdb()
        self.connection.execute("CHECKPOINT")

    # The workers

    def start(self) -> None:
        """Start the processes, and return when all of them work."""
        for command in self.arm.commands:
            self.workers[command.name] = start(
                python(command), self._environment(command.name), self.log
            )
        deadline = time.monotonic() + READY_SECONDS
        job = WARM_UP
        while not (self._all_connected() and job > WARM_UP + 20):
            self.ask("singles", first=job, jobs=1, seconds=READY_SECONDS)
            job += 1
            for name, worker in self.workers.items():
                if worker.poll() is not None or time.monotonic() > deadline:
                    raise ArmFailed(f"{name} of {self.arm.name} fails:\n{tail(self.log)}")

    def _all_connected(self) -> bool:
        seen = self.connection.execute(
            "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
        ).fetchall()
        names = {name for (name,) in seen}
        return all(f"bench {c.name}" in names for c in self.arm.commands if c.connects)

    def signal(self, how: int) -> None:
        """To every process and its children: SIGSTOP closes the gate, SIGCONT opens it."""
        for worker in self.workers.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, how)

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(worker.pid) for worker in self.workers.values())

    def memory(self, name: str) -> float:
        """Resident MB of the largest child of the process ``name``."""
        children = psutil.Process(self.workers[name].pid).children(recursive=True)
        return max(child.memory_info().rss for child in children) / 1024**2

    def stop(self) -> None:
        for worker in self.workers.values():
            with contextlib.suppress(ProcessLookupError):
                worker.terminate()
        for worker in self.workers.values():
            end(worker)
        self.workers.clear()

    # What became of the jobs

    def effects(self) -> int:
        """How many jobs were done at least once."""
        return self._count("SELECT count(DISTINCT job) FROM bench_effects WHERE job < %s")

    def orders(self) -> int:
        return self._count("SELECT count(*) FROM bench_orders WHERE job < %s")

    def doubled(self) -> int:
        return self._count(
            "SELECT count(*) - count(DISTINCT job) FROM bench_effects WHERE job < %s"
        )

    def _count(self, query: str) -> int:
        return self.connection.execute(query, [WARM_UP]).fetchone()[0]

    # Processes

    def _environment(self, name: str) -> dict[str, str]:
        return self.stage.environment(self.arm) | {"PGAPPNAME": f"bench {name}"}
