"""An export: what was asked for, and what became of it."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import ExpressionWrapper, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from exports import columns as csv_columns
from exports.rows import rows_of
from tasks.models import BackgroundTask, TaskStatus
from tickets.filters import TicketFilter, pairs
from tickets.models import Team

from .choices import Delimiter, FileFormat, RowKind
from .progress import Progressing, with_progress
from .requesting import Requesting
from .stored_file import StoredFile


class ExportQuerySet(Requesting, models.QuerySet):
    def of(self, user):
        return self.filter(requester=user)

    def with_state(self):
        """Loads the task, ``is_expired`` by the database's clock, the purge run or not, and what
        ``Progressing`` needs."""
        return with_progress(self.select_related("task")).annotate(
            is_expired=ExpressionWrapper(
                Q(task__expires_at__isnull=False, task__expires_at__lte=Now()),
                output_field=models.BooleanField(),
            )
        )


class Export(Progressing, StoredFile, models.Model):
    """A request for a file of tickets. Its state is its task's; its id is its task's id.

    ``filters`` are the list's query parameters as they were, and ``filters_shown`` what they meant
    in words then: pairs of label and value. ``rows``, ``size`` (bytes), ``cut_cells`` (texts longer
    than a cell of the format) and ``team_ids`` (the teams whose tickets are in it) are those of the
    completed result, and ``execution_id`` says whose chunks are that result.
    """

    task = models.OneToOneField(
        "tasks.BackgroundTask", models.CASCADE, primary_key=True, related_name="+"
    )
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="+",
        verbose_name=_("requester"),
    )
    filters = models.JSONField(_("filters"), default=dict, blank=True)
    filters_shown = models.JSONField(_("filters in words"), default=list, blank=True)
    columns = ArrayField(models.CharField(max_length=30), verbose_name=_("columns"))
    row_kind = models.CharField(
        _("each row is"), max_length=20, choices=RowKind, default=RowKind.TICKETS
    )
    file_format = models.CharField(
        _("format"), max_length=10, choices=FileFormat, default=FileFormat.CSV
    )
    delimiter = models.CharField(
        _("delimiter"), max_length=1, choices=Delimiter, default=Delimiter.COMMA
    )
    time_zone = models.CharField(_("time zone"), max_length=64)
    filters_zone = models.CharField(_("time zone of the filters"), max_length=64)
    language = models.CharField(_("language"), max_length=10)
    announced_rows = models.PositiveBigIntegerField(_("rows announced"), null=True, blank=True)
    rows = models.PositiveBigIntegerField(_("rows"), null=True, blank=True)
    size = models.PositiveBigIntegerField(_("bytes"), null=True, blank=True)
    cut_cells = models.PositiveBigIntegerField(_("texts cut"), default=0, blank=True)
    team_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("teams in the result"), default=list, blank=True
    )
    execution_id = models.UUIDField(_("execution of the result"), null=True, blank=True)
    created_at = models.DateTimeField(_("requested"), db_default=Now())
    # When its turn came last (exports/turns.py), and of which execution that was.
    began_at = models.DateTimeField(_("begun"), null=True, blank=True)
    turn_of = models.UUIDField(_("execution whose turn it is"), null=True, blank=True)

    objects = ExportQuerySet.as_manager()

    class Meta:
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        indexes = [
            # Reader: a person's list of exports.
            models.Index(fields=["requester", "-task"], name="export_list"),
            # Reader: turns.py, for when a person was served last.
            models.Index(
                fields=["requester", "began_at"],
                condition=Q(began_at__isnull=False),
                name="export_last_turn",
            ),
        ]

    def __str__(self):
        return f"{self._meta.verbose_name} {self.pk}"

    # Questions

    def tickets(self):
        """The tickets that the filters select and the requester may see, now.

        Raises:
            ValidationError: a filter names what the requester cannot see any more.
        """
        # Days in the filters are those that the requester saw in the list, whoever asks.
        with timezone.override(self.filters_zone):
            ticket_filter = TicketFilter(self.filters, self.requester)
            if ticket_filter.errors:
                raise ValidationError(ticket_filter.complaints())
            return ticket_filter.queryset()

    def rows_to_write(self):
        """The rows of its kind for those tickets, in the file's order.

        Raises:
            ValidationError: a filter names what the requester cannot see any more.
        """
        return rows_of(self.tickets(), self.row_kind)

    @property
    def is_ready(self) -> bool:
        """Completed and not expired. Of rows loaded ``with_state``."""
        return self.task.status == TaskStatus.COMPLETED and not self.is_expired

    def shows_only(self, team_ids: set[int]) -> bool:
        """Whether every ticket in the result is of one of these teams."""
        return team_ids.issuperset(self.team_ids)

    def is_visible_to(self, user) -> bool:
        """Whether ``user`` may still see the tickets of every team in the result."""
        return self.shows_only(set(Team.objects.visible_to(user).values_list("pk", flat=True)))

    @property
    def error(self) -> str | None:
        """Why it failed, or why the last attempt did while another one is to come."""
        task = self.task
        if self.waits_for_turn:
            return None
        shows = task.is_live or task.status == TaskStatus.FAILED
        return task.last_error or None if shows else None

    @property
    def extension(self) -> str:
        return FileFormat(self.file_format).extension

    @property
    def has_delimiter(self) -> bool:
        return FileFormat(self.file_format).has_delimiter

    @property
    def differs_from_announced(self) -> bool:
        """Were other rows written than the person was told before? Of a completed one."""
        return None not in (self.rows, self.announced_rows) and self.rows != self.announced_rows

    @property
    def content_type(self) -> str:
        return FileFormat(self.file_format).content_type

    def choices(self) -> list[tuple[str, str]]:
        """Names and values of a form that asks for the same again."""
        return [
            ("row_kind", self.row_kind),
            ("format", self.file_format),
            ("delimiter", self.delimiter),
            ("time_zone", self.time_zone),
            *(("columns", key) for key in self.columns),
            *pairs(self.filters),
        ]

    def column_titles(self) -> list[str]:
        columns = csv_columns.COLUMNS_OF[self.row_kind]
        return [columns[key].title for key in self.columns if key in columns]

    # Verbs

    def cancel(self, by) -> bool:
        """True if this call did it."""
        return self.task.cancel(by=by)

    @transaction.atomic
    def retry(self, by) -> bool:
        """A new run of a failed or cancelled export. True if this call did it.

        Raises:
            DedupConflict: the same click's export is under way again already.
            LimitReached: as many are under way as are allowed, or as much is stored.
        """
        exports = type(self).objects
        exports.lock_person(self.requester)
        retried = self.task.retry(by=by)
        if retried:
            exports.refuse_more_of(self.requester, besides=1)
        return retried

    def discard(self, by) -> bool:
        """Let the file of a completed export expire now. True if this call did it."""
        return BackgroundTask.objects.filter(pk=self.pk, owner=by).expire() == 1
