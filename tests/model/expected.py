"""What each task should be: the ledger's contract in plain Python, without database or clock.

Written from the contract, not from the code. Times are seconds of the machine's own clock.
"""

import uuid
from dataclasses import dataclass, field

from tasks.registry import Kind

WAITING, RUNNING = "WAITING", "RUNNING"
COMPLETED, FAILED, CANCELLED = "COMPLETED", "FAILED", "CANCELLED"

# A hundred times what is set in production, so that what a step really takes never matters.
RECHECK_SECONDS = 3_000
LOST_SECONDS = 3_000
LEASE_SECONDS = 12_000
GRACE_SECONDS = 20_000
RECORD_SECONDS = 80_000
TOMBSTONE_SECONDS = 6_000
BATCH_SIZE = 3  # of a scan, so that a handful of tasks are several
PRUNE_SECONDS = 40_000
FREE_RETRIES = 2  # a fiftieth, so that the limit is met


class Broken(AssertionError):
    """A promise of the ledger that did not hold. ``rule`` names it."""

    def __init__(self, rule: str, detail: str):
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


def holds(rule: str, condition, detail: str) -> None:
    if not condition:
        raise Broken(rule, detail)


@dataclass
class Attempt:
    run: int
    attempt: int
    execution: uuid.UUID
    outcome: str = ""


@dataclass
class Expected:
    """One committed task. Its verbs are the arrows; whoever calls one has asked whether it may."""

    pk: int
    kind: Kind
    key: str | None
    run_at: int
    alive_at: int
    status: str = WAITING
    run: int = 0
    attempt: int = 0
    granted: int = 0  # attempts on top of the policy's, in this run
    dispatched_at: int | None = None
    execution: uuid.UUID | None = None
    expires_at: int | None = None
    progress: tuple[int, int | None] = (0, None)
    attempts: list[Attempt] = field(default_factory=list)
    completed_runs: dict[int, uuid.UUID] = field(default_factory=dict)

    # Questions

    def __str__(self):
        return f"{self.kind.name} {self.job}"

    @property
    def job(self) -> str:
        return f"{self.pk}:{self.run}"

    @property
    def max_attempts(self) -> int:
        return len(self.kind.ladder) + 1 + self.granted

    @property
    def is_live(self) -> bool:
        return self.status in (WAITING, RUNNING)

    def is_due(self, now: int) -> bool:
        return self.run_at <= now

    def may_be_claimed(self, run: int, now: int) -> bool:
        return self.status == WAITING and self.run == run and self.is_due(now)

    def is_held_by(self, execution: uuid.UUID) -> bool:
        return self.status == RUNNING and self.execution == execution

    def has_expired_lease(self, now: int) -> bool:
        return self.status == RUNNING and now - self.alive_at > LEASE_SECONDS

    def needs_check(self, now: int) -> bool:
        """Whether a round looks at it: never handed over, or not looked at for long."""
        return self.status == WAITING and (
            self.dispatched_at is None or now - self.dispatched_at > RECHECK_SECONDS
        )

    def needs_chunks_of(self, execution: uuid.UUID, now: int) -> bool:
        if self.status == COMPLETED:
            kept_until = (self.expires_at or 0) + GRACE_SECONDS
            return self.completed_runs.get(self.run) == execution and now < kept_until
        return self.is_held_by(execution)

    def may_be_pruned(self, now: int) -> bool:
        """As far as its own row says; stored chunks keep it all the same."""
        if self.is_live or now - self.alive_at < PRUNE_SECONDS:
            return False
        return self.expires_at is None or now - self.expires_at > GRACE_SECONDS

    def wait_after(self, attempt: int) -> int:
        """Seconds after failed attempt number ``attempt``; granted ones do not climb the ladder."""
        ladder = self.kind.ladder
        return ladder[min(max(attempt - self.granted, 1), len(ladder)) - 1] if ladder else 0

    # Arrows

    def claim(self, execution: uuid.UUID, now: int) -> None:
        self.status, self.execution, self.alive_at = RUNNING, execution, now
        self.attempt += 1
        self.progress = (0, None)
        self.attempts.append(Attempt(self.run, self.attempt, execution))

    def renew(self, now: int) -> None:
        self.alive_at = now

    def complete(self, now: int) -> None:
        self.completed_runs[self.run] = self.execution
        ttl = self.kind.result_ttl
        self.expires_at = now + int(ttl().total_seconds()) if ttl else None
        self._leave(COMPLETED, "completed", now)

    def fail(self, now: int) -> None:
        if self.attempt >= self.max_attempts:
            self._leave(FAILED, "failed", now)
        else:
            self._wait_again("failed", now + self.wait_after(self.attempt), now)

    def fail_for_good(self, now: int) -> None:
        self._leave(FAILED, "failed", now)

    def retry_later(self, at: int, now: int) -> None:
        if self.granted < FREE_RETRIES:
            self.granted += 1
        elif self.attempt >= self.max_attempts:
            self._leave(FAILED, "failed", now)
            return
        self._wait_again("released", at, now)

    def release(self, now: int) -> None:
        self.granted += 1
        self._wait_again("released", now, now)

    def recover(self, now: int) -> None:
        if self.attempt >= self.max_attempts:
            self._leave(FAILED, "lease_expired", now)
        else:
            self._wait_again("lease_expired", self.run_at, now)

    def queue_said_failed(self, record_attempt: int, now: int) -> None:
        self.attempt += record_attempt > self.attempt
        self.alive_at = now
        if self.attempt >= self.max_attempts:
            self.status = FAILED
        else:
            self.run_at = now + self.wait_after(self.attempt)

    def cancel(self, now: int) -> None:
        self._leave(CANCELLED, "cancelled", now)

    def run_again(self, now: int) -> None:
        self.status = WAITING
        self.run += 1
        self.attempt = self.granted = 0
        self.run_at = self.alive_at = now
        self.dispatched_at = self.expires_at = None
        self.progress = (0, None)

    def _wait_again(self, outcome: str, run_at: int, now: int) -> None:
        self.run_at, self.dispatched_at = run_at, None
        self._leave(WAITING, outcome, now)

    def _leave(self, status: str, outcome: str, now: int) -> None:
        for attempt in self.attempts:
            attempt.outcome = attempt.outcome or outcome
        self.status, self.execution, self.alive_at = status, None, now


# --- The queue ------------------------------------------------------------------------------------


@dataclass
class Record:
    """A job's hash in Redis. ``at`` in microseconds."""

    state: str
    attempt: int
    message: str
    at: int


@dataclass
class Queues:
    """What Redis holds, read by the machine itself."""

    now: int  # microseconds
    records: dict[str, Record | None]
    delayed: dict[str, int]  # job → score
    lists: dict[str, list]
    watermarks: dict[str, int]

    def count(self, job: str) -> int:
        """How many messages of this job are in the lists."""
        return sum(job in message.jobs for each in self.lists.values() for message in each)


def verdict(job: str, attempt: int, run_at: int, is_due: bool, queue: str, queues: Queues) -> str:
    """What a round owes a WAITING task, by the contract's table: ``add``, ``failed``, ``nothing``,
    or ``add if empty``: lost only if the list is still empty when the round comes to it.

    Args:
        run_at: as a score, microseconds.
    """
    record = queues.records.get(job)
    if record is None:
        return "add"
    if record.state == "failed" and record.attempt >= attempt:
        return "failed"
    if record.attempt <= attempt or record.state == "completed":
        return "add"
    if record.state == "delayed":
        return "nothing" if queues.delayed.get(job) == run_at else "add"
    patience = LOST_SECONDS * 1_000_000
    if not is_due:
        return "nothing"
    if record.at > queues.now + patience:
        return "add"
    if queues.now - record.at < patience:
        return "nothing"
    if record.at + patience <= queues.watermarks[queue] <= queues.now + patience:
        return "add"
    return "nothing" if queues.lists[queue] else "add if empty"
