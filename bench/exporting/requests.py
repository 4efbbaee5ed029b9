"""How long a person waits for "accepted" beside a plain page, while workers make exports."""

import random
import threading
import time

from bench.exporting.helpdesk import Helpdesk
from bench.exporting.web import BEAT, Person, Web, running, worker
from bench.exporting.words import LEADS
from bench.measuring import Book, percentile
from bench.processes import Answering, ArmFailed, tail

CLIENTS, WORKERS = 4, 2
PLAIN, LIST, ACCEPTED = "plain page", "list of 50 tickets", "request to 202"
MEDIAN, P95 = "answer under load, median", "answer under load, p95"
_PLAIN, _LIST, _NEW = "/exports/", "/tickets/", "/exports/new/"


def measure(desk: Helpdesk, rounds: int, each: int, book: Book) -> None:
    """In every round each client sends ``each`` requests of every sort, in a mixed order.

    Every export is another person's, of 50 tickets; leads' exports of all tickets keep the workers
    busy meanwhile.
    """
    desk.clear()
    with desk.process("ask") as process:
        sessions = process.ask("askers", people=CLIENTS * each)
        with Web.of(desk) as web:
            for number in range(-1, rounds):  # the first round warms up
                with running(desk, worker(WORKERS), BEAT), Busy(desk, process):
                    waits = _one_round(web, sessions, each)
                desk.forget()
                if number >= 0:
                    for arm, seconds in waits.items():
                        book.add(arm, MEDIAN, "ms", percentile(seconds, 0.5) * 1000)
                        book.add(arm, P95, "ms", percentile(seconds, 0.95) * 1000)
    desk.clear()


def _one_round(web: Web, sessions: list[str], each: int) -> dict[str, list[float]]:
    waits: dict[str, list[float]] = {PLAIN: [], LIST: [], ACCEPTED: []}
    faults: list[str] = []
    clients = [
        threading.Thread(target=_client, args=[web.port, mine, waits, faults])
        for mine in (sessions[number::CLIENTS] for number in range(CLIENTS))
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if faults:
        raise ArmFailed(f"{len(faults)} requests failed; the first: {faults[0]}")
    return waits


def _client(port: int, sessions: list[str], waits: dict, faults: list[str]) -> None:
    person = Person(port, sessions[0])
    for session in sessions:
        person.change(session)
        for arm in random.sample([PLAIN, LIST, ACCEPTED], 3):
            started = time.perf_counter()
            if arm == ACCEPTED:
                status, body = person.post(_NEW)
            else:
                status, body = person.get(_PLAIN if arm == PLAIN else _LIST)
            waits[arm].append(time.perf_counter() - started)
            if status != (202 if arm == ACCEPTED else 200):
                faults.append(f"{arm}: {status} {body[:300]!r}")


class Busy:
    """While it is open, workers make large exports: a new one is asked for when one ends."""

    STARTS_WITHIN = 60  # seconds

    def __init__(self, desk: Helpdesk, process: Answering):
        self._desk, self._process = desk, process
        self._asked: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_busy)

    def __enter__(self):
        """Opens when all workers are busy. Raises ArmFailed."""
        self._connection = self._desk.stage.connect(self._desk.arm)
        self._thread.start()
        deadline = time.monotonic() + self.STARTS_WITHIN
        while self._count("RUNNING") < WORKERS:
            if time.monotonic() > deadline:
                self.__exit__()
                raise ArmFailed(f"The workers do not begin:\n{tail(self._desk.log)}")
            time.sleep(0.05)
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()
        self._connection.close()

    def _keep_busy(self) -> None:
        while not self._over.wait(0.05):
            for _ in range(WORKERS - self._count("WAITING", "RUNNING")):
                number = len(self._asked) % len(LEADS)
                self._asked.append(self._process.ask("ask_again", number=number))

    def _count(self, *statuses: str) -> int:
        return self._connection.execute(
            "SELECT count(*) FROM tasks_backgroundtask WHERE id = ANY (%s) AND status = ANY (%s)",
            [self._asked, list(statuses)],
        ).fetchone()[0]
