"""What web, dispatcher and workers count and time, for Prometheus: one call where it happens.

Each costs microseconds and no query. With PROMETHEUS_MULTIPROC_DIR all processes that share that
folder count together, and whichever is asked shows the sum; a process that died leaves its counts.
So there are counters and histograms here, and no gauges: what is so now is asked of the ledger
(``teamdesk/measures.py``).

Labels are bounded: a kind that this process does not know is ``other``.
"""

from prometheus_client import Counter, Histogram

from tasks import registry

OTHER = "other"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600)

ENDS = ("completed", "retried", "failed", "released", "lost")
REFUSALS = ("duplicate", "early", "gone", "unreachable")
STEPS = ("enqueued", "readded", "promoted")

attempts = Counter(
    "teamdesk_task_attempts", "Attempts that a worker ended, by how", ["kind", "outcome"]
)
run_seconds = Histogram(
    "teamdesk_task_run_seconds",
    "From the handler's begin to the attempt's end",
    ["kind"],
    buckets=_SECONDS,
)
wait_seconds = Histogram(
    "teamdesk_task_wait_seconds", "From due to claim", ["kind"], buckets=_SECONDS
)
dispatch_seconds = Histogram(
    "teamdesk_dispatch_lag_seconds",
    "From due to checked by a round, of tasks that waited for one",
    buckets=_SECONDS,
)
handed_over = Counter(
    "teamdesk_handed_over", "Tasks that rounds handed over to the queue", ["step"]
)
claims_refused = Counter(
    "teamdesk_claims_refused", "Messages for which there was nothing to claim", ["reason"]
)
fenced_writes = Counter(
    "teamdesk_fenced_writes", "Writes of executions that had lost their lease, refused", ["kind"]
)
recoveries = Counter(
    "teamdesk_lease_recoveries", "Leases that ran out and were taken back", ["kind"]
)
dead_letters = Counter(
    "teamdesk_dead_letters", "Tasks that failed for good, whoever found out", ["kind"]
)
rounds = Counter("teamdesk_rounds", "Rounds of the dispatcher", ["result"])
round_seconds = Histogram(
    "teamdesk_round_duration_seconds", "Duration of a round", buckets=_SECONDS
)
fast_path_failures = Counter(
    "teamdesk_fast_path_failures", "Hand-overs left to the dispatcher's round"
)
purged = Counter("teamdesk_purged", "Stored pieces of results that rounds purged")
pruned = Counter("teamdesk_pruned_tasks", "Tasks that the ledger forgot")

ALL = (
    attempts, run_seconds, wait_seconds, dispatch_seconds, handed_over, claims_refused,
    fenced_writes, recoveries, dead_letters, rounds, round_seconds, fast_path_failures, purged,
    pruned,
)  # fmt: skip


def label(kind: str) -> str:
    return kind if registry.is_known(kind) else OTHER


def prepare() -> None:
    """Show every series from 0 on: a counter that appears with its first event has no increase."""
    for kind in [*registry.kinds(), OTHER]:
        for outcome in ENDS:
            attempts.labels(kind, outcome)
        for metric in (run_seconds, wait_seconds, fenced_writes, recoveries, dead_letters):
            metric.labels(kind)
    for metric, values in (
        (handed_over, STEPS),
        (claims_refused, REFUSALS),
        (rounds, ("success", "fault")),
    ):
        for value in values:
            metric.labels(value)


# The worker's


def task_claimed(kind: str, waited: float) -> None:
    wait_seconds.labels(label(kind)).observe(max(0.0, waited))


def attempt_ended(kind: str, outcome: str, seconds: float) -> None:
    """``outcome``: one of ENDS. One that ``failed`` leaves a dead letter."""
    kind = label(kind)
    attempts.labels(kind, outcome).inc()
    run_seconds.labels(kind).observe(seconds)
    if outcome == "failed":
        dead_letters.labels(kind).inc()


def claim_refused(reason: str, times: int = 1) -> None:
    """``reason``: one of REFUSALS."""
    claims_refused.labels(reason).inc(times)


def write_fenced_out(kind: str) -> None:
    fenced_writes.labels(label(kind)).inc()


# The dispatcher's


def lease_recovered(kind: str, has_failed: bool) -> None:
    recoveries.labels(label(kind)).inc()
    if has_failed:
        task_failed(kind)


def task_failed(kind: str) -> None:
    dead_letters.labels(label(kind)).inc()


def round_ended(report, *, is_success: bool) -> None:
    rounds.labels("success" if is_success else "fault").inc()
    round_seconds.observe(report.seconds)
    purged.inc(report.purged)
    for step in STEPS:
        handed_over.labels(step).inc(getattr(report, step))
