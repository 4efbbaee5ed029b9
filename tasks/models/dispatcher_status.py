"""How the dispatcher is doing: one row, written by every round, read by health and metrics."""

import json
from datetime import timedelta

from django.db import connection, models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

LATEST_SUCCESS_SECONDS = 15  # five rounds; an older success means that nobody dispatches
GAP = timedelta(minutes=1)  # between two successes; a longer one begins a new steady time


# In SQL: after a quiet round the ORM would work longer on it than PostgreSQL.
_SUCCESS = """
UPDATE tasks_dispatcherstatus SET
    steady_since = CASE
        WHEN last_succeeded_at >= statement_timestamp() - %s
        THEN COALESCE(steady_since, statement_timestamp())
        ELSE statement_timestamp()
    END,
    last_succeeded_at = statement_timestamp(),
    last_seconds = %s,
    last_counts = %s::jsonb
"""


class DispatcherStatus(models.Model):
    last_started_at = models.DateTimeField(_("last round started"), null=True)
    last_succeeded_at = models.DateTimeField(_("last successful round ended"), null=True)
    # Rounds succeed since then without a gap: what waits for a worker is judged from there on.
    steady_since = models.DateTimeField(_("rounds succeed since"), null=True)
    last_seconds = models.FloatField(_("seconds of the last round"), null=True)
    last_counts = models.JSONField(_("what the last round did"), default=dict)
    last_error = models.TextField(_("last error"), blank=True, default="")
    last_failed_at = models.DateTimeField(_("last failed round ended"), null=True)

    class Meta:
        verbose_name = _("dispatcher status")
        verbose_name_plural = _("dispatcher status")
        constraints = [
            models.CheckConstraint(condition=models.Q(pk=1), name="there_is_one_dispatcher_status")
        ]

    def __str__(self):
        return str(_("dispatcher"))

    @classmethod
    def current(cls) -> "DispatcherStatus":
        """The one row, or an unsaved blank before the first round."""
        return cls.objects.filter(pk=1).first() or cls(pk=1)

    @classmethod
    def record_start(cls) -> None:
        if not cls.objects.filter(pk=1).update(last_started_at=Now()):
            cls.objects.update_or_create(pk=1, defaults={"last_started_at": Now()})

    @classmethod
    def record_success(cls, seconds: float, counts: dict[str, int]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_SUCCESS, [GAP, seconds, json.dumps(counts)])

    @classmethod
    def record_fault(cls, seconds: float, counts: dict[str, int], error: str) -> None:
        cls.objects.filter(pk=1).update(
            last_failed_at=Now(), last_seconds=seconds, last_counts=counts, last_error=error
        )
