"""Bugs that the model must find, as changes of the source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """``target`` is ``module:name`` or ``module:Class.name``; ``old`` occurs in it exactly once."""

    name: str
    target: str
    old: str
    new: str


BUGS = [
    Bug(
        "a claim does not look at the status",
        "tasks.claim:_CLAIM",
        "task.status = 'WAITING' AND ",
        "",
    ),
    Bug("a claim does not look at the run", "tasks.claim:_CLAIM", "USING (id, run)", "USING (id)"),
    Bug(
        "a claim does not look at run_at",
        "tasks.claim:_CLAIM",
        " AND task.run_at <= statement_timestamp()",
        "",
    ),
    Bug(
        "a claim does not count the attempt",
        "tasks.claim:_CLAIM",
        "task.attempt + 1",
        "task.attempt",
    ),
    Bug(
        "a finish is not fenced by its execution",
        "tasks.completion:_COMPLETE",
        "USING (id, run, execution_id)",
        "USING (id, run)",
    ),
    Bug(
        "a failure is not fenced by its execution",
        "tasks.lease:Lease._update",
        "execution_id=self.execution_id,",
        "",
    ),
    Bug(
        "the effect commits before COMPLETED, not with it",
        "tasks.lease:Lease.complete",
        "@repeating(lock_timeouts=True)\n",
        "",
    ),
    Bug(
        "a batch commits the effects of what it lost",
        "tasks.completion:complete_together",
        "record_completed(leases) != len(leases)",
        "record_completed(leases) > len(leases)",
    ),
    Bug(
        "a release costs an attempt",
        "tasks.lease:Lease.release",
        ', max_attempts=F("max_attempts") + 1',
        "",
    ),
    Bug(
        "one attempt more than the policy allows",
        "tasks.lease:Lease._attempts_used_up",
        "self.task.attempt >= self.task.max_attempts",
        "self.task.attempt > self.task.max_attempts",
    ),
    Bug(
        "a batch is stamped before it is published",
        "tasks.dispatcher:_hand_over",
        "    added = _add(to_add)\n",
        "    _stamp(to_add)\n    added = _add(to_add)\n",
    ),
    Bug(
        "a cancel leaves the attempt open",
        "tasks.models.queryset:BackgroundTaskQuerySet.cancel",
        "        TaskAttempt.objects.filter(task_id__in=jobs).close(AttemptOutcome.CANCELLED)\n",
        "",
    ),
    Bug(
        "a new run has the old run's number",
        "tasks.models.background_task:BackgroundTask.retry",
        '                        run=F("run") + 1,\n',
        "",
    ),
    Bug(
        "the purge removes the row of the ledger",
        "exports.models.chunk:ExportChunkQuerySet.remove_some",
        "removed, _ = self.model",
        "from tasks.models import BackgroundTask\n"
        "            rows = self.values('export')\n"
        "            BackgroundTask.objects.filter(pk__in=rows).delete()\n"
        "            removed, _ = self.model",
    ),
]

# Those that take a rarer order of steps: hunted by their names, best with the deep profile.
RARER = [
    Bug(
        "a retry travels with others",
        "tasks.queue.publishing:travelling_together",
        "size == 1 or task.attempt",
        "size == 1",
    ),
    Bug(
        "RetryLater is free for ever",
        "tasks.lease:Lease._retries_are_free",
        "return self._granted < registry.FREE_RETRIES",
        "return True",
    ),
    Bug(
        "a stamp does not look at the status",
        "tasks.dispatcher:_stamp",
        "WHERE task.status = 'WAITING'",
        "WHERE TRUE",
    ),
    Bug(
        "due re-checks are forgotten",
        "tasks.dispatcher:_scan",
        "    if has_due:\n        _drain_due(tasks.due_rechecks(), report, limit, deadline)\n",
        "",
    ),
    Bug(
        "recovery judges the age only when it reads",
        "tasks.recovery:recover_together",
        "BackgroundTask.objects.with_expired_lease().filter(",
        "BackgroundTask.objects.filter(",
    ),
    Bug(
        "recovery does not look at the execution",
        "tasks.recovery:recover_together",
        "pk__in=locked, execution_id__in=executions",
        "pk__in=locked",
    ),
    Bug(
        "a failed record is charged to a later attempt",
        "tasks.recovery:queue_said_failed",
        "        attempt=task.attempt,\n        status",
        "        status",
    ),
    Bug(
        "an enqueue beside a live key gives nothing back",
        "tasks.models.queryset:_ON_CONFLICT",
        "DO UPDATE SET dedup_key = EXCLUDED.dedup_key",
        "DO NOTHING",
    ),
    Bug(
        "a record that says completed means skip",
        "tasks.records:judge",
        "if record.state == State.COMPLETED:\n        return Verdict.ADD",
        "if record.state == State.COMPLETED:\n        return Verdict.NOTHING",
    ),
    Bug(
        "an empty list loses nothing",
        "tasks.records:_is_lost",
        "return view.lengths[queue] == 0 or overtaken",
        "return overtaken",
    ),
    Bug(
        "a prune takes results within their time",
        "tasks.models.pruning:Prunable.prunable",
        "Q(expires_at=None) | Q(expires_at__lt=expired),",
        "",
    ),
]
