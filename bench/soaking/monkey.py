"""The monkey: kills, freezes and restarts what is on the stage, in an order that is its seed's."""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass

import psutil

from bench.soaking.members import ProcessMember
from bench.soaking.stage import LEASE_SECONDS, Stage


@dataclass(frozen=True)
class Action:
    """What was done, to whom (a member's name), when (seconds since 1970)."""

    name: str
    member: str
    at: float


class Monkey:
    """Draws from a shuffled pack, so that every action has its turn also in a short run."""

    PACK = (
        ["kill_worker_main", "kill_pool_child", "kill_worker_group"] * 2
        + ["freeze_pool_child", "freeze_worker", "terminate_worker"]
        + ["kill_beat"] * 2
        + ["freeze_beat", "terminate_beat", "kill_web_child"]
        + ["empty_valkey", "freeze_valkey"]
        + ["restart_postgres", "crash_postgres"]
    )

    def __init__(self, seed: int, stage: Stage, pause: float):
        self.random = random.Random(seed)
        self.stage = stage
        self.pause = pause
        self.actions: list[Action] = []
        self._thaws: list[threading.Thread] = []
        self._calm = threading.Event()

    @property
    def counts(self) -> Counter:
        return Counter(action.name for action in self.actions)

    def run(self, closing: threading.Event) -> None:
        pack: list[str] = []
        while not closing.wait(self.random.uniform(0.2, 1.8) * self.pause):
            if not pack:
                pack = list(self.PACK)
                self.random.shuffle(pack)
            name = pack.pop()
            # What ended by itself this very moment cannot be killed: no action then.
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                getattr(self, name)(name)

    def heal(self) -> None:
        """Thaw what is still frozen, and wait until everything is well."""
        self._calm.set()
        for thaw in self._thaws:
            thaw.join()
        self.stage.wait_until_well()

    # Workers

    def kill_worker_main(self, name):
        """Its children are left for whoever starts it again."""
        worker = self._one_of(self.stage.workers)
        if worker:
            self._note(name, worker)
            worker.signal(signal.SIGKILL)

    def kill_pool_child(self, name):
        worker = self._one_of(self.stage.workers)
        if worker and (child := self._child_of(worker)):
            self._note(name, worker)
            child.kill()

    def kill_worker_group(self, name):
        worker = self._one_of(self.stage.workers)
        if worker:
            self._note(name, worker)
            worker.kill_all()

    def freeze_pool_child(self, name):
        """Longer than the lease: another takes the work over, then the sleeper wakes."""
        worker = self._one_of(self.stage.workers)
        if worker and (child := self._child_of(worker)):
            self._note(name, worker)
            self._freeze([child.pid], LEASE_SECONDS * self.random.uniform(0.3, 1.8))

    def freeze_worker(self, name):
        worker = self._one_of(self.stage.workers)
        if worker:
            self._note(name, worker)
            pids = [child.pid for child in psutil.Process(worker.pid).children(recursive=True)]
            seconds = LEASE_SECONDS * self.random.uniform(0.3, 1.8)
            self._freeze([worker.pid, *pids], seconds, worker)

    def terminate_worker(self, name):
        worker = self._one_of(self.stage.workers)
        if worker:
            self._note(name, worker)
            worker.signal(signal.SIGTERM)

    # Beats and web

    def kill_beat(self, name):
        beat = self._one_of(self.stage.beats)
        if beat:
            self._note(name, beat)
            beat.signal(signal.SIGKILL)

    def freeze_beat(self, name):
        beat = self._one_of(self.stage.beats)
        if beat:
            self._note(name, beat)
            self._freeze([beat.pid], self.random.uniform(1, 8), beat)

    def terminate_beat(self, name):
        beat = self._one_of(self.stage.beats)
        if beat:
            self._note(name, beat)
            beat.signal(signal.SIGTERM)

    def kill_web_child(self, name):
        """Of answers that are lost this way the journal knows nothing."""
        web = self._one_of([self.stage.web])
        if web and (child := self._child_of(web)):
            self._note(name, web)
            child.kill()

    # Services

    def empty_valkey(self, name):
        if valkey := self._one_of([self.stage.valkey]):
            self._note(name, valkey)
            valkey.signal(signal.SIGKILL)

    def freeze_valkey(self, name):
        """It accepts connections and answers nothing."""
        if valkey := self._one_of([self.stage.valkey]):
            self._note(name, valkey)
            self._freeze([valkey.pid], self.random.uniform(0.5, 4), valkey)

    def restart_postgres(self, name):
        if postgres := self._one_of([self.stage.postgres]):
            self._note(name, postgres)
            postgres.signal(signal.SIGINT)  # fast: rolls back and disconnects

    def crash_postgres(self, name):
        if postgres := self._one_of([self.stage.postgres]):
            self._note(name, postgres)
            postgres.signal(signal.SIGQUIT)  # immediate: recovers from its log at the next start

    # How

    def _one_of(self, members):
        """One that is well; None if none is."""
        well = [member for member in members if member.is_well]
        chosen = self.random.choice(members)  # always drawn: the order of draws is the seed's
        return chosen if chosen in well else next(iter(well), None)

    def _child_of(self, member: ProcessMember) -> psutil.Process | None:
        children = psutil.Process(member.pid).children(recursive=True)
        return self.random.choice(children) if children else None

    def _note(self, name: str, member) -> None:
        self.actions.append(Action(name, member.name, time.time()))

    def _freeze(self, pids: list[int], seconds: float, member=None) -> None:
        if member:
            member.frozen += 1
        processes = [psutil.Process(pid) for pid in pids]  # which know if a pid was reused
        for process in processes:
            os.kill(process.pid, signal.SIGSTOP)

        def thaw():
            self._calm.wait(seconds)
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()
            if member:
                member.frozen -= 1

        thread = threading.Thread(target=thaw, name="thaw")
        thread.start()
        self._thaws.append(thread)
