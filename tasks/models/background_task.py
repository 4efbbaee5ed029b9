"""The ledger: outbox and job record in one table. ARCHITECTURE.md draws its arrows."""

import json
import logging
from collections.abc import Sequence

from django.conf import settings
from django.db import IntegrityError, connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tasks import correlation, fast_path, registry
from tasks.clock import InUtc

from .queryset import BackgroundTaskQuerySet
from .task_status import LIVE, TERMINAL, TaskStatus

logger = logging.getLogger(__name__)


class DedupConflict(Exception):
    """Another live task holds the dedup key; nothing was changed."""


class BackgroundTask(models.Model):
    """One piece of work the database accepted, from its transaction to its end.

    Every change of ``status`` is a guarded UPDATE; 0 rows means another got there first.
    Worker arrows are in ``tasks/lease.py``, the dispatcher's in ``tasks/recovery.py``.
    """

    kind = models.CharField(_("kind"), max_length=50)
    status = models.CharField(
        _("status"), max_length=10, choices=TaskStatus, default=TaskStatus.WAITING
    )
    run = models.PositiveIntegerField(_("run"), default=0)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    max_attempts = models.PositiveIntegerField(_("attempts allowed"), default=7)
    run_at = models.DateTimeField(_("not before"), db_default=Now())
    dispatched_at = models.DateTimeField(_("queue last checked"), null=True, blank=True)
    execution_id = models.UUIDField(_("execution"), null=True, blank=True)
    updated_at = models.DateTimeField(_("last sign of life"), db_default=Now())
    dedup_key = models.CharField(_("dedup key"), max_length=200, null=True, blank=True)
    payload = models.JSONField(_("payload"), default=dict, blank=True)
    ticket = models.ForeignKey(
        "tickets.Ticket",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="background_tasks",
        verbose_name=_("ticket"),
    )
    team = models.ForeignKey(
        "tickets.Team",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="background_tasks",
        verbose_name=_("team"),
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="background_tasks",
        verbose_name=_("owner"),
    )
    reminder_revision = models.PositiveIntegerField(_("reminder revision"), null=True, blank=True)
    # The web request that enqueued it, as its log lines and response header name it.
    request_id = models.CharField(
        _("web request"), max_length=correlation.LIMIT, blank=True, default=""
    )
    progress_done = models.PositiveBigIntegerField(_("done"), default=0)
    progress_total = models.PositiveBigIntegerField(_("of"), null=True, blank=True)
    last_error = models.TextField(_("last error"), blank=True, default="")
    created_at = models.DateTimeField(_("created"), db_default=Now())
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    expires_at = models.DateTimeField(_("result expires"), null=True, blank=True)

    objects = BackgroundTaskQuerySet.as_manager()

    class Meta:
        verbose_name = _("background task")
        verbose_name_plural = _("background tasks")
        constraints = [
            models.UniqueConstraint(
                fields=["dedup_key"],
                condition=Q(status__in=LIVE),
                name="one_live_task_per_dedup_key",
            ),
            models.CheckConstraint(
                condition=Q(status=TaskStatus.RUNNING, execution_id__isnull=False)
                | (~Q(status=TaskStatus.RUNNING) & Q(execution_id__isnull=True)),
                name="running_means_an_execution_holds_it",
            ),
            models.CheckConstraint(
                condition=Q(status__in=TERMINAL, finished_at__isnull=False)
                | Q(status__in=LIVE, finished_at__isnull=True),
                name="terminal_means_finished_at_is_set",
            ),
            models.CheckConstraint(
                condition=Q(run_at__gte=registry.EARLIEST, run_at__lt=registry.LATEST),
                name="run_at_is_readable",
            ),
            models.CheckConstraint(condition=Q(run__gte=0), name="run_is_not_negative"),
            models.CheckConstraint(condition=Q(attempt__gte=0), name="attempt_is_not_negative"),
        ]
        indexes = [
            # Reader: BackgroundTaskQuerySet.never_dispatched, the head of every round.
            models.Index(
                fields=["run_at", "id"],
                condition=Q(status=TaskStatus.WAITING, dispatched_at__isnull=True),
                name="task_never_dispatched",
            ),
            # Reader: BackgroundTaskQuerySet.due_rechecks. Few rows are due however many wait. Of an
            # expression PostgreSQL keeps statistics for the rows of this index alone, and so knows
            # that they are few; of run_at it knows that nearly all of the table is in the past.
            models.Index(
                InUtc("run_at"),
                condition=Q(status=TaskStatus.WAITING, dispatched_at__isnull=False),
                name="task_due_recheck",
            ),
            # Reader: BackgroundTaskQuerySet.other_rechecks, one batch a round.
            models.Index(
                fields=["dispatched_at", "run_at", "id"],
                condition=Q(status=TaskStatus.WAITING, dispatched_at__isnull=False),
                name="task_other_recheck",
            ),
            # Reader: recover_expired_leases, which judges the lease by updated_at.
            models.Index(
                fields=["updated_at"],
                condition=Q(status=TaskStatus.RUNNING),
                name="task_running_lease",
            ),
            # Reader: the pruning, oldest first.
            models.Index(
                fields=["finished_at", "id"], condition=Q(status__in=TERMINAL), name="task_ended"
            ),
            # Readers: readiness, which looks for the last canary of a queue, and their pruning. A
            # few thousand rows; writing any other kind does not touch it.
            models.Index(
                fields=["kind", "finished_at"],
                condition=Q(kind__in=list(registry.CANARIES.values())),
                name="task_canaries",
            ),
            # Readers: the operations page and the ledger's list in admin, for what failed.
            models.Index(
                fields=["-id"], condition=Q(status=TaskStatus.FAILED), name="task_dead_letter"
            ),
            # Reader: the operations page, for what waits for another attempt.
            models.Index(
                fields=["-id"],
                condition=Q(status=TaskStatus.WAITING) & ~Q(last_error=""),
                name="task_waiting_after_error",
            ),
            # Reader: Ticket's reminder invalidation.
            models.Index(
                fields=["ticket", "kind"],
                condition=Q(status=TaskStatus.WAITING),
                name="task_waiting_of_ticket",
            ),
        ]

    def __str__(self):
        return f"{self.kind} {self.pk}:{self.run}"

    # Reading

    @classmethod
    def columns(cls) -> list[str]:
        """The table's columns in the order that ``from_row`` takes them."""
        return [field.column for field in cls._meta.concrete_fields]

    @classmethod
    def from_row(cls, row: Sequence) -> "BackgroundTask":
        """A task from a row that a cursor read: what ``raw`` does at five times the price."""
        row = list(row)
        row[_PAYLOAD] = json.loads(row[_PAYLOAD])
        return cls.from_db(connection.alias, None, row)

    # Questions

    @property
    def job_id(self) -> str:
        """The queue's name for this run of the task."""
        return f"{self.pk}:{self.run}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_new_and_due(self) -> bool:
        """Was it due and not yet looked at by the dispatcher when it was read?"""
        return self.status == TaskStatus.WAITING and self.dispatched_at is None and self.is_due

    # Verbs of a person

    def cancel(self, *, by=None, reason: str = "") -> bool:
        """WAITING, RUNNING → CANCELLED. True if this call did it.

        A running handler notices at its next renewal, progress or finish: all are fenced.
        """
        return type(self).objects.filter(pk=self.pk).cancel(by=by, reason=reason) == 1

    @transaction.atomic
    def retry(self, *, by=None) -> bool:
        """FAILED, CANCELLED → WAITING as a new run. True if this call did it.

        Guarded by the run this object was loaded with, so two people retrying make one new run.

        Raises:
            DedupConflict: another live task holds the same dedup key.
        """
        try:
            with transaction.atomic():
                changed = (
                    type(self)
                    .objects.filter(
                        pk=self.pk,
                        run=self.run,
                        status__in=[TaskStatus.FAILED, TaskStatus.CANCELLED],
                    )
                    .update(
                        status=TaskStatus.WAITING,
                        run=F("run") + 1,
                        attempt=0,
                        max_attempts=registry.kind(self.kind).max_attempts,
                        run_at=Now(),
                        updated_at=Now(),
                        dispatched_at=None,
                        started_at=None,
                        finished_at=None,
                        expires_at=None,
                        last_error="",
                        progress_done=0,
                        progress_total=None,
                    )
                )
        except IntegrityError as error:
            if "one_live_task_per_dedup_key" not in str(error):
                raise
            raise DedupConflict(
                f"Task {self.pk} was not retried: another live task has its key {self.dedup_key!r}."
            ) from error
        if changed:
            self.refresh_from_db()
            logger.info("%s is run again for %s", self, by)
            self.is_due = True
            fast_path.hand_over_on_commit(self)
        return changed == 1


_PAYLOAD = BackgroundTask.columns().index("payload")
