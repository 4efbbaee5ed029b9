"""Exports for staff, to look at: states change in the ledger, files stay private."""

from django.contrib import admin
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from exports.models import Export, ScheduledExport
from tasks.admin import BigTable, ReadOnly


class InWords:
    """Admin of what has filters, which it shows in words."""

    @admin.display(description=_("filters in words"))
    def words(self, row):
        return " · ".join(f"{label}: {value}" for label, value in row.filters_shown)


@admin.register(Export)
class ExportAdmin(InWords, BigTable, ReadOnly, admin.ModelAdmin):
    list_select_related = ["task", "requester"]
    list_display = ["task_id", "requester", "words", "state", "rows", "bytes", "created_at"]
    list_filter = ["created_at"]
    search_fields = ["requester__username"]
    ordering = ["-task"]
    sortable_by = ["task_id"]
    fields = [
        "requester",
        "words",
        "filters",
        "columns",
        "row_kind",
        "file_format",
        "delimiter",
        "time_zone",
        "filters_zone",
        "language",
        "state",
        "announced_rows",
        "rows",
        "bytes",
        "cut_cells",
        "expires",
        "execution_id",
        "created_at",
    ]
    readonly_fields = ["words", "state", "bytes", "expires"]

    @admin.display(description=_("task"))
    def state(self, export):
        url = reverse("admin:tasks_backgroundtask_change", args=[export.pk])
        return format_html('<a href="{}">{}</a>', url, export.task.get_status_display())

    @admin.display(description=_("size"))
    def bytes(self, export):
        return None if export.size is None else filesizeformat(export.size)

    @admin.display(description=_("expires"))
    def expires(self, export):
        return export.task.expires_at


@admin.register(ScheduledExport)
class ScheduledExportAdmin(InWords, BigTable, ReadOnly, admin.ModelAdmin):
    list_select_related = ["owner", "last_export"]
    list_display = ["name", "owner", "words", "when", "next_run_at", "paused_at", "last_export"]
    list_filter = ["rhythm", ("paused_at", admin.EmptyFieldListFilter)]
    search_fields = ["name", "owner__username"]
    ordering = ["-pk"]
    sortable_by = ["name", "next_run_at"]
    fields = [
        "owner",
        "name",
        "words",
        "filters",
        "columns",
        "row_kind",
        "file_format",
        "delimiter",
        "time_zone",
        "filters_zone",
        "language",
        "when",
        "next_run_at",
        "revision",
        "paused_at",
        "pause_reason",
        "last_export",
        "created_at",
    ]
    readonly_fields = ["words", "when"]

    @admin.display(description=_("how often"))
    def when(self, scheduled):
        return scheduled.rhythm_in_words()
