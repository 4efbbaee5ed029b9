"""The ledger forgets: what ended long ago is removed, beside all that runs."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models import Count, Q
from django.db.models.functions import Now

from tasks import metrics, registry
from tasks.errors import describe
from tasks.transactions import repeating

from .task_attempt import TaskAttempt
from .task_status import TERMINAL

logger = logging.getLogger(__name__)

TASKS_AT_ONCE = 500  # in one transaction
ATTEMPTS_AT_ONCE = 2_000  # with them


class Prunable(models.QuerySet):
    def prunable(self, older_than: timedelta):
        """Ended longer ago than ``older_than``, and nothing hangs on them that may be needed: no
        result within its time and grace, and nothing that ``registry.holds_back`` names."""
        expired = Now() - settings.TEAMDESK_PURGE_GRACE
        rows = self.filter(
            Q(expires_at=None) | Q(expires_at__lt=expired),
            status__in=TERMINAL,
            finished_at__lt=Now() - older_than,
        )
        for condition in registry.reasons_to_keep():
            rows = rows.exclude(condition())
        return rows

    def prune(
        self,
        older_than: timedelta,
        *,
        seconds: float | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Remove what is prunable among these, with its attempts and all that cascades from it.

        Oldest first, in batches that are committed one by one, past rows that another holds. Safe
        at any time beside a running system; live rows are never touched, nor is Redis.

        Args:
            seconds: stop after the first batch past this time; None: when nothing is left.
            progress: called after each batch with how many are removed so far.

        Returns how many tasks were removed.
        """
        with transaction.atomic(durable=True):
            pass  # refuses a caller's transaction: it would hold every batch until its end
        deadline = None if seconds is None else time.monotonic() + seconds
        removed, since, refused = 0, None, set()
        while deadline is None or time.monotonic() < deadline:
            rows = self.prunable(older_than).exclude(pk__in=refused)
            if since:  # where the last batch ended: what lies before is gone, but still indexed
                rows = rows.filter(finished_at__gte=since)
            try:
                count, ended_at = _remove_some(rows)
            except IntegrityError:
                count, ended_at, bad = _remove_one_by_one(rows)
                refused |= bad
            if ended_at is None:
                break
            since = ended_at
            removed += count
            metrics.pruned.inc(count)
            if progress:
                progress(removed)
        return removed


@repeating
def _remove_some(rows) -> tuple[int, datetime | None]:
    """One transaction. Returns how many are gone and when the last of them ended; None: there was
    nothing. A task with very many attempts loses some of them first and goes later."""
    rows = rows.order_by("finished_at", "pk")
    locked = rows.select_for_update(skip_locked=True).values_list("pk", "finished_at")
    ended = dict(locked[:TASKS_AT_ONCE])
    if not ended:
        return 0, None
    attempts = TaskAttempt.objects.filter(task__in=ended)
    counts = dict(attempts.values_list("task").annotate(Count("pk")).order_by())
    taken, total = [], 0
    for pk in ended:
        total += counts.get(pk, 0)
        if total > ATTEMPTS_AT_ONCE:
            break
        taken.append(pk)
    if not taken:
        oldest = next(iter(ended))
        some = attempts.filter(task=oldest).order_by("pk").values_list("pk", flat=True)
        TaskAttempt.objects.filter(pk__in=list(some[:ATTEMPTS_AT_ONCE])).delete()
        return 0, ended[oldest]
    rows.model.objects.filter(pk__in=taken).delete()
    return len(taken), ended[taken[-1]]


def _remove_one_by_one(rows) -> tuple[int, datetime | None, set[int]]:
    """Something refers to one of the batch and refuses to go: the others go. Also returns who."""
    batch = rows.order_by("finished_at", "pk").values_list("pk", "finished_at")
    ended = dict(batch[:TASKS_AT_ONCE])
    removed, refused = 0, set()
    for pk in ended:
        try:
            removed += _remove_some(rows.filter(pk=pk))[0]
        except IntegrityError as error:
            logger.warning("Task %s cannot be pruned: %s", pk, describe(error))
            refused.add(pk)
    return removed, max(ended.values(), default=None), refused
