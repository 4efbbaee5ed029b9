"""Which part is unwell, and why: what ``/readyz`` and ``manage.py ready`` say.

Within two seconds, whatever hangs: each part is asked by a probe of its own, all at once.
"""

import logging
import time
from dataclasses import dataclass, field

from django.conf import settings
from django.db import DatabaseError, OperationalError, connection
from psycopg.errors import QueryCanceled

from tasks import queue, registry
from tasks.models.dispatcher_status import LATEST_SUCCESS_SECONDS
from teamdesk.canaries import workers_of
from teamdesk.measures import seconds_since_success
from teamdesk.probes import NoAnswer, Probe

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 1.5  # of all probes together
GIVEN_UP_SECONDS = 5.0  # a probe's own connection closes itself then, and its thread ends

OK = "ok"


@dataclass
class Readiness:
    """``parts``: each part's "ok", or what is the matter with it, for everybody: no addresses, no
    names. ``broken``: those of them that make this system not ready. The others only warn: work is
    late, but it is done."""

    parts: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    @property
    def is_ready(self) -> bool:
        return not self.broken

    @property
    def complaints(self) -> list[str]:
        return [f"{part}: {self.parts[part]}" for part in self.parts if part in self.broken]

    @property
    def warnings(self) -> list[str]:
        return [
            f"{part}: {state}"
            for part, state in self.parts.items()
            if state != OK and part not in self.broken
        ]

    def only(self, parts) -> "Readiness":
        """The same, as if there were no other parts."""
        return Readiness({part: self.parts[part] for part in parts}, self.broken & set(parts))

    def note(self, part: str, state: str = OK, is_broken: bool | None = None) -> None:
        self.parts[part] = state
        if state != OK if is_broken is None else is_broken:
            self.broken.add(part)


def readiness() -> Readiness:
    deadline = time.monotonic() + ANSWER_SECONDS
    ledger, redis = _LEDGER.ask(), _REDIS.ask()
    found = Readiness()
    found.note("database")
    found.note("redis")
    try:
        success_age, workers = ledger.answer(deadline, ANSWER_SECONDS)
    except DatabaseError as error:
        logger.warning("Not ready: the database does not answer: %s", error)
        _without_database(found, "does not answer")
    except NoAnswer as silence:
        logger.warning("Not ready: the database %s", silence)
        _without_database(found, str(silence))
    else:
        found.note("dispatcher", _dispatcher(success_age))
        for name, state in workers.items():
            found.note(_part(name), *state)
    try:
        redis.answer(deadline, ANSWER_SECONDS)
    except queue.QueueUnreachable as error:
        logger.warning("Not ready: %s", error)
        found.note("redis", "does not answer")
    except NoAnswer as silence:
        logger.warning("Not ready: Redis %s", silence)
        found.note("redis", str(silence))
    _say_nothing_of_workers_without_work(found)
    return found


def _ask_ledger():
    """Age of the last successful round, and of the workers of each queue: what is the matter, and
    whether that means broken."""
    connection.ensure_connection()
    if not connection.in_atomic_block:
        connection.connection.patience = GIVEN_UP_SECONDS
    age = seconds_since_success()
    queues = registry.QUEUES if settings.TEAMDESK_CHORES else ()
    return age, {name: _workers(name) for name in queues}


def _workers(queue_name: str) -> tuple[str, bool]:
    try:
        workers = workers_of(queue_name, settings.TEAMDESK_LEASE_SECONDS)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return "unknown: the ledger is too busy to be asked", False
        raise
    return workers.describe(), workers.are_dead


_LEDGER = Probe(_ask_ledger)
_REDIS = Probe(lambda: queue.lengths())  # any answer will do


def _part(queue_name: str) -> str:
    return f"workers_{queue_name}"


def _dispatcher(success_age: float | None) -> str:
    if success_age is None:
        return "no round has succeeded yet"
    if success_age > LATEST_SUCCESS_SECONDS:
        return f"the last successful round was {success_age:.0f} s ago"
    return OK


def _without_database(found: Readiness, state: str) -> None:
    found.note("database", state)
    found.note("dispatcher", "unknown: the database does not answer")
    if settings.TEAMDESK_CHORES:
        for name in registry.QUEUES:
            found.note(_part(name), "unknown: the database does not answer", is_broken=False)


def _say_nothing_of_workers_without_work(found: Readiness) -> None:
    """Without a dispatcher or Redis no canary reaches them, however well they are."""
    for cause in ("dispatcher", "redis"):
        if cause not in found.broken:
            continue
        for name in registry.QUEUES:
            part = _part(name)
            if part in found.broken:
                found.broken.discard(part)
                found.parts[part] = f"unknown: no canary can reach them ({cause})"
