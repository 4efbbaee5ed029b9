"""An arm on the stage: its processes and its client."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import psutil

from bench.arms import Arm, python
from bench.stage import ROOT, Stage, cpu_seconds

READY_SECONDS = 90
WARM_UP = 1_000_000_000  # jobs from this number on warm up and are not counted


class ArmFailed(Exception):
    """A process of an arm ended or did not get ready; the message has the end of its log."""


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
        self.client = self._spawn(
            [sys.executable, "-m", "bench.arms.client"],
            "client",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.clear()
        return self

    def __exit__(self, *error):
        self.stop()
        self.client.stdin.close()
        self.client.stdout.close()
        self._end(self.client)
        self.connection.close()

    def ask(self, do: str, **request):
        """What the client answers to ``do``. Raises ArmFailed."""
        try:
            self.client.stdin.write(json.dumps({"do": do} | request) + "\n")
            self.client.stdin.flush()
            line = self.client.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ArmFailed(f"The client of {self.arm.name} ended:\n{self._log_tail()}")
        return json.loads(line)

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
            self.workers[command.name] = self._spawn(python(command), command.name)
        deadline = time.monotonic() + READY_SECONDS
        job = WARM_UP
        while not (self._all_connected() and job > WARM_UP + 20):
            self.ask("singles", first=job, jobs=1, seconds=READY_SECONDS)
            job += 1
            for name, worker in self.workers.items():
                if worker.poll() is not None or time.monotonic() > deadline:
                    raise ArmFailed(f"{name} of {self.arm.name} fails:\n{self._log_tail()}")

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
            self._end(worker)
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

    def _spawn(self, command: list[str], name: str, **options) -> subprocess.Popen:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.stage.environment(self.arm) | {"PGAPPNAME": f"bench {name}"},
                stderr=log,
                start_new_session=True,
                **({"stdin": subprocess.DEVNULL, "stdout": log} | options),
            )

    def _end(self, process: subprocess.Popen) -> None:
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
