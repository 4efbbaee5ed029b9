"""Kinds of background tasks: which handler runs them, and by which policy.

A handler is ``handler(task, lease) -> effect | None``. What it does itself happens outside any
transaction (calls to the world, chunked work). The effect it returns is a function without
arguments; the worker runs it in the one transaction that also records COMPLETED, so the database
effect exists exactly when the task is completed. That transaction may be rolled back and run again
(after a deadlock, or because a neighbour's effect in the same batch failed), so an effect changes
nothing but the database, and calling it again after a rollback does the same. The four rules:

1. Idempotent: it may run twice, so it checks its target's state first.
2. It owns its timeouts: every outside call has one.
3. Failure is raised, never swallowed.
4. No long transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SHORT, LONG = "short", "long"
QUEUES = (SHORT, LONG)
# The kind of each queue's canary: an empty task a minute, whose completion shows living workers.
CANARIES = {SHORT: "CANARY_SHORT", LONG: "CANARY_LONG"}

# Seconds to wait after each failed attempt: seven attempts, then FAILED.
DEFAULT_LADDER = (60, 300, 1_800, 7_200, 21_600, 86_400)
# Attempts that a handler may buy with RetryLater before they count again.
FREE_RETRIES = 100
# The handlers of a batch begin within this time after its claim. Those that did not are released,
# so that one which takes its time delays its neighbours no longer than this.
BATCH_SECONDS = 10

Effect = Callable[[], None]


# A moment outside could not be read back by Python in every zone: one such row would stop a round.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


class UnknownKind(Exception):
    """No handler is registered under this name."""


class PermanentFailure(Exception):
    """Raised by a handler: trying again cannot help. The text is shown to people."""


class RetryLater(Exception):
    """Raised by a handler: try again at ``at``, without using up an attempt."""

    def __init__(self, at: datetime, reason: str = ""):
        self.at = moment(at)
        super().__init__(reason or f"to be tried again at {at.isoformat()}")


def moment(at: datetime) -> datetime:
    """``at`` itself. Raises ValueError if it is no aware datetime of the years 1900 to 9998."""
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise ValueError(f"{at!r} is no datetime with a time zone.")
    if not EARLIEST <= at < LATEST:
        raise ValueError(f"{at!r} is not of the years 1900 to 9998.")
    return at


@dataclass(frozen=True)
class Kind:
    """The policy of a kind.

    Attributes:
        queue: ``short`` or ``long``.
        time_limit: seconds a handler may run; the lease is not renewed beyond it, and Celery ends
            the process 30 s later.
        ladder: seconds to wait after each failed attempt but the last.
        result_ttl: returns how long a result is kept after completion; None: it never expires.
        every: makes it a periodic chore: the round inserts one task per slot of this length,
            counted from 1970 in UTC; while the last one is live it inserts none.
        batch: how many due tasks of this kind may travel in one message, be claimed by one
            statement and, if all goes well, be completed in one transaction. Only first attempts
            share. For quick handlers that do nothing outside the database: what one of them did
            outside waits for its neighbours before it is recorded.
    """

    name: str
    handler: Callable[..., Effect | None]
    queue: str = SHORT
    time_limit: float = 60
    ladder: tuple[float, ...] = DEFAULT_LADDER
    result_ttl: Callable[[], timedelta] | None = None
    every: timedelta | None = None
    batch: int = 1

    def __post_init__(self):
        if self.every is not None and self.every < timedelta(seconds=1):
            raise ValueError(f"Kind {self.name}: a slot of {self.every} is shorter than a second.")
        if self.queue not in QUEUES:  # nobody would consume it, and no round could judge it
            raise ValueError(f"Kind {self.name}: {self.queue!r} is none of the queues {QUEUES}.")
        if self.batch < 1:
            raise ValueError(f"Kind {self.name}: a batch of {self.batch}.")
        if self.batch > 1 and not self.ladder:  # a neighbour that kills the worker would fail it
            raise ValueError(f"Kind {self.name}: in a batch a task needs more than one attempt.")

    @property
    def max_attempts(self) -> int:
        return len(self.ladder) + 1

    def backoff(self, attempt: int, max_attempts: int) -> timedelta:
        """The wait after failed attempt number ``attempt`` (from 1).

        ``max_attempts`` is the task's own: what it exceeds the policy's by was granted by releases
        and ``RetryLater``, and those attempts do not climb the ladder.
        """
        granted = max(0, max_attempts - self.max_attempts)
        rung = min(max(attempt - granted, 1), len(self.ladder)) - 1
        return timedelta(seconds=self.ladder[rung] if self.ladder else 0)


_kinds: dict[str, Kind] = {}
_purges: list[Callable[[float], int]] = []
_reasons_to_keep: list[Callable] = []


def handles(name: str, **policy):
    """Decorator: registers a function as the handler of kind ``name``; see ``Kind`` for policy."""

    def register(handler):
        if name in _kinds and _kinds[name].handler.__qualname__ != handler.__qualname__:
            raise ValueError(f"Kind {name} has two handlers.")
        _kinds[name] = Kind(name, handler, **policy)
        return handler

    return register


def purges(function: Callable[[float], int]):
    """Decorator: ``function(seconds) -> rows`` removes results past their time in every round.

    It works in batches within its budget of ``seconds`` and never removes a ledger row.
    """
    if function not in _purges:
        _purges.append(function)
    return function


def holds_back(condition: Callable):
    """Decorator: ``condition()`` is what Django's ``filter`` takes; tasks of which it holds are not
    pruned: something hangs on them that must be removed first, and elsewhere."""
    if condition not in _reasons_to_keep:
        _reasons_to_keep.append(condition)
    return condition


def kinds() -> dict[str, Kind]:
    return dict(_kinds)


def is_known(name: str) -> bool:
    return name in _kinds


def chores() -> dict[str, Kind]:
    """The kinds that the round inserts by itself."""
    return {name: kind for name, kind in _kinds.items() if kind.every}


def reasons_to_keep() -> list[Callable]:
    return list(_reasons_to_keep)


def registered_purges() -> list[Callable[[float], int]]:
    return list(_purges)


def known_kind(name: str) -> Kind:
    """Raises UnknownKind with the names that are known."""
    try:
        return _kinds[name]
    except KeyError:
        known = ", ".join(sorted(_kinds)) or "none"
        raise UnknownKind(
            f"No handler for kind {name!r}; known: {known}. Is its module imported in ready()?"
        ) from None


def kind(name: str) -> Kind:
    """The kind, or for an unknown name one with the default policy whose every attempt fails: in a
    rolling deploy the next worker may know it."""
    return _kinds.get(name) or Kind(name, _fail_unknown)


def _fail_unknown(task, lease):
    known_kind(task.kind)
    raise UnknownKind(f"Kind {task.kind!r} was registered while this attempt began.")
