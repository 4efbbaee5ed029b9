"""What happened each time a worker claimed a task."""

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class AttemptOutcome(models.TextChoices):
    COMPLETED = "completed", _("completed")
    FAILED = "failed", _("failed")
    LEASE_EXPIRED = "lease_expired", _("lease expired")
    RELEASED = "released", _("released")
    CANCELLED = "cancelled", _("cancelled")


class TaskAttemptQuerySet(models.QuerySet):
    def close(self, outcome: AttemptOutcome, error: str = "", traceback: str = "") -> int:
        """End the open ones among these. Every arrow out of RUNNING calls it."""
        return self.filter(finished_at=None).update(
            outcome=outcome, finished_at=Now(), error=error, traceback=traceback
        )


class TaskAttempt(models.Model):
    """One row per claimed attempt; open until an arrow out of RUNNING closes it."""

    task = models.ForeignKey(
        "tasks.BackgroundTask",
        models.CASCADE,
        related_name="attempts",
        verbose_name=_("background task"),
    )
    run = models.PositiveIntegerField(_("run"))
    attempt = models.PositiveIntegerField(_("attempt"))
    execution_id = models.UUIDField(_("execution"), unique=True)
    worker = models.CharField(_("worker"), max_length=200, blank=True)
    started_at = models.DateTimeField(_("started"), db_default=Now())
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    outcome = models.CharField(_("outcome"), max_length=20, choices=AttemptOutcome, blank=True)
    error = models.TextField(_("error"), blank=True, default="")
    traceback = models.TextField(_("traceback"), blank=True, default="")

    objects = TaskAttemptQuerySet.as_manager()

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "run", "attempt"], name="one_row_per_claimed_attempt"
            ),
            models.CheckConstraint(
                condition=models.Q(outcome="", finished_at__isnull=True)
                | (~models.Q(outcome="") & models.Q(finished_at__isnull=False)),
                name="closed_attempt_has_an_outcome",
            ),
        ]

        indexes = [
            # Reader: the operations page's charts. Rows are written in this order, so ranges of
            # blocks will do, and a claim does not pay for a place in a tree.
            BrinIndex(fields=["started_at"], autosummarize=True, name="attempt_started"),
        ]

    def __str__(self):
        return f"{self.task_id}:{self.run} #{self.attempt}"
