"""What a queue record says, and what the dispatcher does about it. Judgement only, no Redis.

Who writes which record:

======================= ========= ============================ =================
who                     state     attempt                      at
======================= ========= ============================ =================
queue.add, due          waiting   the ledger's + 1: the next   when published
queue.add, not yet due  delayed   the ledger's + 1             ``run_at``
worker, claim refused   active    as it is                     as it is
worker, after a second  active    the claimed one              as it is
worker, at the end      completed the claimed one              as it is
worker's main process   failed    as it is                     as it is
======================= ========= ============================ =================

So a record whose attempt is not beyond the ledger's is about an attempt that was claimed already.
"""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from tasks import registry

logger = logging.getLogger(__name__)

LOST_AFTER_SECONDS = 30  # a message older than this may be judged lost

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class State(StrEnum):
    DELAYED = "delayed"  # in the sorted set until run_at
    WAITING = "waiting"  # published, not started
    ACTIVE = "active"  # a worker has started on it
    COMPLETED = "completed"  # the queue is done with it
    FAILED = "failed"  # its process died or Celery gave up on it


@dataclass(frozen=True)
class Record:
    """One job's hash. ``attempt`` is the attempt it is about; ``at`` is microseconds since 1970:
    when the message was published (Redis's clock), or ``run_at`` of a delayed job."""

    state: State
    attempt: int
    message: str
    at: int
    error: str = ""
    score: int | None = None  # in the sorted set of delayed jobs


@dataclass
class View:
    """What one pipeline read: the records of a batch and how its queues stand."""

    now: int
    records: dict[int, Record | None] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)


class Verdict(StrEnum):
    ADD = "add"
    FAILED = "failed"
    NOTHING = "nothing"


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def judge(task, record: Record | None, view: View) -> Verdict:
    """What the dispatcher does with a WAITING task whose record is ``record``.

    ``task`` carries ``is_due`` by PostgreSQL's clock. "A record exists" never means "skip".
    The first rule that fits:
    """
    if record is None:
        return Verdict.ADD
    if record.state == State.FAILED and record.attempt >= task.attempt:
        return Verdict.FAILED
    if record.attempt <= task.attempt:
        return Verdict.ADD  # about an attempt that was already claimed
    if record.state == State.COMPLETED:
        return Verdict.ADD  # the queue is done, the ledger is not; the ledger wins
    if record.state == State.DELAYED:
        # Scores are floating point numbers: from the year 2255 on they round.
        in_place = record.score == int(float(microseconds(task.run_at)))
        return Verdict.NOTHING if in_place else Verdict.ADD
    if task.is_due and _is_lost(record, registry.kind(task.kind).queue, view):
        return Verdict.ADD
    return Verdict.NOTHING


def _is_lost(record: Record, queue: str, view: View) -> bool:
    """Its list is empty, or a message published well after it has already started.

    What comes from the future was written before Redis's clock was set back, or by another Redis
    that this one took over from: a record's age is then unknown, a watermark says nothing.
    """
    patience = LOST_AFTER_SECONDS * 1_000_000
    if record.at > view.now + patience:
        return True
    if view.now - record.at < patience:
        return False
    overtaken = record.at + patience <= view.watermarks[queue] <= view.now + patience
    return view.lengths[queue] == 0 or overtaken


def parse(fields: dict[bytes, bytes], score: float | None) -> Record | None:
    """The record in a hash as Redis returned it; None if there is none, or none to be read."""
    if not fields:
        return None
    text = {key.decode(errors="replace"): fields[key].decode(errors="replace") for key in fields}
    try:
        return Record(
            state=State(text["state"]),
            attempt=int(text.get("attempt") or 0),
            message=text.get("message", ""),
            at=int(text.get("at") or 0),
            error=text.get("error", ""),
            score=None if score is None else int(score),
        )
    except (KeyError, ValueError, OverflowError):
        logger.warning("An unreadable queue record is replaced: %r", text)
        return None
