"""A scheduled export: what is exported again and again, and when the next time is."""

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import (
    Exists,
    ExpressionWrapper,
    OuterRef,
    Prefetch,
    Q,
    TextField,
    Value,
)
from django.db.models.functions import Concat, Now
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.clock import database_now
from tasks.models import BackgroundTask
from tickets.filters import pairs

from .choices import Delimiter, FileFormat, RowKind
from .choosing import FILE, Choosing
from .export import Export
from .recurring import Recurring, Rhythm
from .running import DEDUP_PREFIX, Running

_LATE = timedelta(minutes=5)  # beyond what a busy worker takes


class ScheduledExportQuerySet(models.QuerySet):
    # Selections

    def of(self, user):
        return self.filter(owner=user)

    def with_state(self):
        """Loads the last export with its state, and ``is_late`` by the database's clock."""
        return self.prefetch_related(Prefetch("last_export", Export.objects.with_state())).annotate(
            is_late=ExpressionWrapper(
                Q(next_run_at__isnull=False, next_run_at__lt=Now() - _LATE),
                output_field=models.BooleanField(),
            )
        )

    def stranded(self):
        """Those that nothing will run: their task failed, or was cancelled without them."""
        key = Concat(Value(DEDUP_PREFIX), "pk", Value(":"), "revision", output_field=TextField())
        its_task = BackgroundTask.objects.live().filter(dedup_key=OuterRef("its_key"))
        return self.filter(paused_at=None).alias(its_key=key).exclude(Exists(its_task))

    # Verbs

    @transaction.atomic
    def schedule(self, by, **choices) -> "ScheduledExport":
        """Have an export made for ``by`` again and again. Returns it, with its next time set.

        Args:
            choices: ``name``; ``filters``, parameters of the ticket list as a QueryDict or a dict;
                ``columns``, keys or None for all; what ``Export.objects.request`` takes of the
                file; and of the rhythm ``rhythm``, ``weekdays`` (1 is Monday), ``day_of_month``
                (31 is the last), ``time_of_day`` on the clocks of ``zone``, which is ``by``'s own
                unless it is given.

        Raises:
            ValidationError: a choice that cannot be, no access to any team, or too many already.
        """
        # Two at once count one after the other.
        Export.objects.lock_person(by)
        limit = settings.TEAMDESK_SCHEDULES_PER_PERSON
        if self.of(by).count() >= limit:
            raise ValidationError(
                _("You have %(limit)d scheduled exports already. Delete one, or change it instead.")
                % {"limit": limit}
            )
        language = by.language or translation.get_language() or settings.LANGUAGE_CODE
        scheduled = self.model(owner=by, language=language, zone=by.zone.key)
        scheduled._choose({"filters": {}, "columns": None} | choices)
        if reason := scheduled.reason_not_to_run():
            raise ValidationError(reason)
        scheduled.next_run_at = scheduled.next_after(database_now())
        scheduled.save(force_insert=True)
        scheduled._enqueue()
        return scheduled


class ScheduledExport(Choosing, Recurring, Running, models.Model):
    """``filters`` to ``language`` are what each export is asked for with, as ``Export`` has them.

    ``next_run_at`` is the time the waiting task is for; none while paused. ``revision`` counts
    whatever makes an earlier task meaningless: each change, and each time it ran. A task carries
    the revision it was made for, and does nothing when the row has another.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="+",
        verbose_name=gettext_lazy("owner"),
    )
    name = models.CharField(gettext_lazy("name"), max_length=100)
    filters = models.JSONField(gettext_lazy("filters"), default=dict, blank=True)
    filters_shown = models.JSONField(gettext_lazy("filters in words"), default=list, blank=True)
    columns = ArrayField(
        models.CharField(max_length=30), verbose_name=gettext_lazy("columns"), default=list
    )
    row_kind = models.CharField(
        gettext_lazy("each row is"), max_length=20, choices=RowKind, default=RowKind.TICKETS
    )
    file_format = models.CharField(
        gettext_lazy("format"), max_length=10, choices=FileFormat, default=FileFormat.CSV
    )
    delimiter = models.CharField(
        gettext_lazy("delimiter"), max_length=1, choices=Delimiter, default=Delimiter.COMMA
    )
    # Of the times in the file. Empty: the owner's own, whichever that is then.
    time_zone = models.CharField(
        gettext_lazy("time zone of the file"), max_length=64, blank=True, default=""
    )
    filters_zone = models.CharField(gettext_lazy("time zone of the filters"), max_length=64)
    language = models.CharField(gettext_lazy("language"), max_length=10)

    rhythm = models.CharField(
        gettext_lazy("how often"), max_length=10, choices=Rhythm, default=Rhythm.WEEKLY
    )
    weekdays = ArrayField(
        models.PositiveSmallIntegerField(),
        verbose_name=gettext_lazy("days of the week"),
        default=list,
        blank=True,
    )
    day_of_month = models.PositiveSmallIntegerField(
        gettext_lazy("day of the month"), null=True, blank=True
    )
    time_of_day = models.TimeField(gettext_lazy("time of day"))
    zone = models.CharField(gettext_lazy("time zone"), max_length=64)

    next_run_at = models.DateTimeField(gettext_lazy("next run"), null=True, blank=True)
    revision = models.PositiveIntegerField(gettext_lazy("revision"), default=0)
    paused_at = models.DateTimeField(gettext_lazy("paused"), null=True, blank=True)
    # Empty when its owner paused it.
    pause_reason = models.TextField(gettext_lazy("reason of the pause"), blank=True, default="")
    last_export = models.ForeignKey(
        Export,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=gettext_lazy("last export"),
    )
    created_at = models.DateTimeField(gettext_lazy("created"), db_default=Now())

    objects = ScheduledExportQuerySet.as_manager()

    class Meta:
        verbose_name = gettext_lazy("scheduled export")
        verbose_name_plural = gettext_lazy("scheduled exports")
        constraints = [
            models.CheckConstraint(
                condition=Q(paused_at__isnull=True, next_run_at__isnull=False)
                | Q(paused_at__isnull=False, next_run_at__isnull=True),
                name="paused_means_no_next_run",
            ),
            models.CheckConstraint(
                condition=Q(rhythm=Rhythm.DAILY, weekdays__len=0, day_of_month__isnull=True)
                | Q(rhythm=Rhythm.WEEKLY, weekdays__len__gt=0, day_of_month__isnull=True)
                | Q(rhythm=Rhythm.MONTHLY, weekdays__len=0, day_of_month__range=(1, 31)),
                name="a_rhythm_has_its_days",
            ),
        ]

    def __str__(self):
        return self.name

    # Questions

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None

    def choices(self) -> list[tuple[str, str]]:
        """Names and values of a form that asks for the same export."""
        return [
            *(("columns", key) for key in self.columns),
            *((name, getattr(self, name)) for name in FILE),
            *pairs(self.filters),
        ]

    # Verbs of its owner

    @transaction.atomic
    def edit(self, by, **choices) -> "ScheduledExport":
        """Change some of what ``schedule`` takes. What was due and has not run is still due, with
        the new choices; a paused one stays paused.

        Raises:
            ValidationError: a choice that cannot be.
            ScheduledExport.DoesNotExist: it was deleted meanwhile.
        """
        self._lock()
        before = self.rhythm_chosen
        self._choose(choices)
        if not self.is_paused:
            self._cancel_waiting(by, "The scheduled export was changed.")
            if self.rhythm_chosen != before:
                self.next_run_at = self.next_after(database_now())
            self._begin_revision()
            self._enqueue()
        self.save()
        return self

    @transaction.atomic
    def pause(self, by=None, reason: str = "") -> bool:
        """Run no more until it is resumed. True if this call did it.

        Raises ScheduledExport.DoesNotExist if it was deleted meanwhile.
        """
        self._lock()
        if self.is_paused:
            return False
        self._cancel_waiting(by, "The scheduled export was paused.")
        self._stop(reason)
        return True

    @transaction.atomic
    def resume(self, by) -> bool:
        """Run again, from the next time on that is due. True if this call did it.

        Raises:
            ValidationError: why it would be paused again.
            ScheduledExport.DoesNotExist: it was deleted meanwhile.
        """
        self._lock()
        if not self.is_paused:
            return False
        if reason := self.reason_not_to_run():
            raise ValidationError(reason)
        self.paused_at, self.pause_reason = None, ""
        self.next_run_at = self.next_after(database_now())
        self._begin_revision()
        self.save()
        self._enqueue()
        return True

    @transaction.atomic
    def discard(self, by) -> bool:
        """Delete it; the files it made stay. True if this call did it."""
        try:
            self._lock()
        except ScheduledExport.DoesNotExist:
            return False
        self._cancel_waiting(by, "The scheduled export was deleted.")
        self.delete()
        return True
