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
        ["kill_worker_main", "kill_pool_child", "kill_worker_group", "freeze_pool_child"] * 2
        + ["freeze_worker", "terminate_worker"]
        + ["kill_beat"] * 2
        + ["freeze_beat", "terminate_beat", "kill_web_child"]
        + ["empty_valkey", "freeze_valkey"]
        + ["restart_postgres", "crash_postgres"]
    )

    def __init__(self, seed: int, stage: Stage, pause: float, only: list[str] | None = None):
        self.cards = [name for name in self.PACK if not only or name in only]
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
        """Until ``closing``. Every other time it first lets everything get well, so that there is
        work to disturb; the other times troubles meet."""
        pack: list[str] = []
        while not closing.wait(self.random.uniform(0.2, 1.8) * self.pause):
            if self.random.random() < 0.5:
                self._wait_until_well(closing)
            if not pack:
                pack = list(self.cards)
                self.random.shuffle(pack)
            name = pack.pop()
            # What ended by itself this very moment cannot be killed: no action then.
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                getattr(self, name)(name)

    def _wait_until_well(self, closing: threading.Event, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not closing.wait(0.1):
            if all(member.is_well for member in self.stage.members):
                return

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
        worker, child = self._at_work(self._one_of(self.stage.workers))
        if child:
            self._note(name, worker)
            child.kill()

    def kill_worker_group(self, name):
        worker = self._one_of(self.stage.workers)
        if worker:
            self._note(name, worker)
            worker.kill_all()

    def freeze_pool_child(self, name):
        """Longer than the lease, where work takes long: another takes it over, then the sleeper
        wakes in the middle of it."""
        worker, child = self._at_work(self.stage.workers[-1])
        if child:
            self._note(name, worker)
            self._freeze([child.pid], LEASE_SECONDS * self.random.uniform(1, 2))

    def freeze_worker(self, name):
        worker = self._one_of(self.stage.workers)
        if worker:
            self._note(name, worker)
            pids = [child.pid for child in _children_of(worker)]
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
        if web:
            self._note(name, web)
            self.random.choice(_children_of(web)).kill()

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

    def _at_work(self, first, seconds: float = 4) -> tuple:
        """A worker, if possible ``first``, and its pool process that has work: a thread of it
        renews the lease. Any other one if none has any for that long."""
        others = [worker for worker in self.stage.workers if worker is not first]
        deadline = time.monotonic() + seconds
        while first:
            children = [
                (worker, child)
                for worker in (first, *others)
                if worker.is_well
                for child in _children_of(worker)
            ]
            at_work = [pair for pair in children if pair[1].num_threads() > 1]
            if at_work or time.monotonic() > deadline:
                return next(iter(at_work or children), (None, None))
            time.sleep(0.02)
        return None, None

    def _note(self, name: str, member) -> None:
        self.actions.append(Action(name, member.name, time.time()))

    def _freeze(self, pids: list[int], seconds: float, member=None) -> None:
        began = time.time()
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
                member.freezes.append((began, time.time()))
                member.frozen -= 1

        thread = threading.Thread(target=thaw, name="thaw")
        thread.start()
        self._thaws.append(thread)


def _children_of(member: ProcessMember) -> list[psutil.Process]:
    return psutil.Process(member.pid).children(recursive=True)
