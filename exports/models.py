"""An export: what was asked for, and the stored result."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Export(models.Model):
    """A request for a file of tickets. Its state is its task's; its id is its task's id.

    ``filters`` are the list's query parameters as they were; ``rows`` and ``size`` (bytes) are those of
    the completed result, and ``execution_id`` says whose chunks are that result.
    """

    task = models.OneToOneField(
        "tasks.BackgroundTask", models.CASCADE, primary_key=True, related_name="export"
    )
    requester = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="exports")
    filters = models.JSONField(_("filters"), default=dict, blank=True)
    columns = models.JSONField(_("columns"), default=list, blank=True)
    time_zone = models.CharField(_("time zone"), max_length=64)
    language = models.CharField(_("language"), max_length=10)
    rows = models.PositiveBigIntegerField(_("rows"), null=True, blank=True)
    size = models.PositiveBigIntegerField(_("bytes"), null=True, blank=True)
    execution_id = models.UUIDField(_("execution of the result"), null=True, blank=True)
    created_at = models.DateTimeField(_("requested"), db_default=Now())

    class Meta:
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        indexes = [
            # Reader: a person's list of exports.
            models.Index(fields=["requester", "-task"], name="export_list"),
        ]

    def __str__(self):
        return f"{self._meta.verbose_name} {self.pk}"


class ExportChunk(models.Model):
    """A piece of a result, committed while the export runs under the execution that wrote it."""

    export = models.ForeignKey(Export, models.CASCADE, related_name="chunks")
    execution_id = models.UUIDField()
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["export", "execution_id", "number"], name="one_chunk_per_number"
            )
        ]

    def __str__(self):
        return f"{self.export_id} {self.number}"
