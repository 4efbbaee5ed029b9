"""The ledger for staff: all visible, nothing editable, retry and cancel through the verbs."""

import json
import re
from datetime import timedelta

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now
from django.http import HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.models import BackgroundTask, TaskStatus

from . import verbs
from .attempts import AttemptInline
from .dispatcher import last_round
from .filters import ConcernFilter, KindFilter
from .rows import BigTable, ReadOnly, each_row
from .text import NOTHING, preformatted, to_the_second

VERBS = ("retry", "cancel")


@admin.register(BackgroundTask)
class BackgroundTaskAdmin(BigTable, ReadOnly, admin.ModelAdmin):
    """Retry and cancel need ``tasks.change_backgroundtask``; nothing else can be changed."""

    # The table grows for ever: no exact count, no facets, no date hierarchy (it looks for the
    # oldest and newest of an unindexed column), no choice lists taken from the rows.
    list_select_related = ["owner"]
    list_per_page = 50
    ordering = ["-id"]
    sortable_by = ["id"]
    list_display = [
        "id", "kind", "state", "run", "attempts_used", "progress", "owner", "ticket_link",
        "short_error", "not_before", "queue_checked", "sign_of_life",
    ]  # fmt: skip
    list_filter = [
        ("status", admin.ChoicesFieldListFilter),
        KindFilter,
        ConcernFilter,
        ("created_at", admin.DateFieldListFilter),
        ("run_at", admin.DateFieldListFilter),
    ]
    search_fields = ["id"]  # get_search_results decides
    search_help_text = gettext_lazy(
        "A task's or a ticket's number, a job id like 12:0, or the beginning of a dedup key."
    )
    actions = ["retry", "cancel"]
    inlines = [AttemptInline]
    change_list_template = "admin/tasks/backgroundtask/change_list.html"
    change_form_template = "admin/tasks/backgroundtask/change_form.html"
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("kind", "state"),
                    ("job_id", "dedup_key"),
                    ("run", "attempts_used", "progress"),
                    "error_text",
                ]
            },
        ),
        (
            gettext_lazy("For whom and what"),
            {
                "fields": [
                    ("owner", "team", "ticket_link"),
                    ("reminder_revision", "request_id"),
                    "pretty_payload",
                ]
            },
        ),
        (
            gettext_lazy("Times"),
            {
                "fields": [
                    ("created", "not_before", "queue_checked"),
                    ("started", "sign_of_life", "finished"),
                    "expires",
                    "execution_id",
                ]
            },
        ),
    ]  # fmt: skip
    readonly_fields = [
        "state", "job_id", "attempts_used", "progress", "error_text", "ticket_link",
        "pretty_payload", "created", "not_before", "queue_checked", "started", "sign_of_life",
        "finished", "expires",
    ]  # fmt: skip

    class Media:
        css = {"all": ["teamdesk/admin.css"]}

    def has_operate_permission(self, request):
        return request.user.has_perm("tasks.change_backgroundtask")

    def get_queryset(self, request):
        limit = Now() - timedelta(seconds=settings.TEAMDESK_LEASE_SECONDS)
        return (
            super()
            .get_queryset(request)
            .annotate(
                lease_expired=ExpressionWrapper(
                    Q(status=TaskStatus.RUNNING, updated_at__lt=limit), BooleanField()
                )
            )
        )

    def get_search_results(self, request, queryset, search_term):
        term = search_term.strip().removeprefix("#")
        if not term:
            return queryset, False
        if number := re.fullmatch(r"([0-9]{1,18})(:[0-9]+)?", term):
            # Of a job id only the task counts: a log line may name an earlier run.
            found = Q(pk=number[1]) if number[2] else Q(pk=term) | Q(ticket=term)
        else:
            found = Q(dedup_key__startswith=term)
        return queryset.filter(found), False

    # Columns and fields

    @admin.display(description=gettext_lazy("status"))
    def state(self, task):
        note = _("no sign of life") if task.lease_expired else ""
        return format_html(
            '<span class="ledger-status ledger-{}">{}</span> {}',
            task.status.lower(),
            task.get_status_display(),
            note,
        )

    @admin.display(description=gettext_lazy("job id"))
    def job_id(self, task):
        return task.job_id

    @admin.display(description=gettext_lazy("attempts"))
    def attempts_used(self, task):
        return f"{task.attempt}/{task.max_attempts}"

    @admin.display(description=gettext_lazy("not before"))
    def not_before(self, task):
        return to_the_second(task.run_at)

    @admin.display(description=gettext_lazy("queue last checked"))
    def queue_checked(self, task):
        return to_the_second(task.dispatched_at)

    @admin.display(description=gettext_lazy("last sign of life"))
    def sign_of_life(self, task):
        return to_the_second(task.updated_at)

    @admin.display(description=gettext_lazy("created"))
    def created(self, task):
        return to_the_second(task.created_at)

    @admin.display(description=gettext_lazy("started"))
    def started(self, task):
        return to_the_second(task.started_at)

    @admin.display(description=gettext_lazy("finished"))
    def finished(self, task):
        return to_the_second(task.finished_at)

    @admin.display(description=gettext_lazy("result expires"))
    def expires(self, task):
        return to_the_second(task.expires_at)

    @admin.display(description=gettext_lazy("ticket"))
    def ticket_link(self, task):
        """Its number alone: who may see the ledger may not be of the ticket's team."""
        if task.ticket_id is None:
            return NOTHING
        url = reverse("admin:tickets_ticket_change", args=[task.ticket_id])
        return format_html('<a href="{}">#{}</a>', url, task.ticket_id)

    @admin.display(description=gettext_lazy("progress"))
    def progress(self, task):
        if task.progress_total is None:
            return task.progress_done or NOTHING
        return f"{task.progress_done} / {task.progress_total}"

    @admin.display(description=gettext_lazy("last error"))
    def short_error(self, task):
        return Truncator(task.last_error).chars(80)

    @admin.display(description=gettext_lazy("last error"))
    def error_text(self, task):
        return preformatted(task.last_error)

    @admin.display(description=gettext_lazy("payload"))
    def pretty_payload(self, task):
        return preformatted(json.dumps(task.payload, ensure_ascii=False, indent=2))

    # Pages

    def get_urls(self):
        one = [
            path(
                f"<int:pk>/{verb}/",
                self.admin_site.admin_view(self.verb_view),
                {"verb": verb},
                name=f"tasks_backgroundtask_{verb}",
            )
            for verb in VERBS
        ]
        return one + super().get_urls()

    def changelist_view(self, request, extra_context=None):
        context = {"dispatcher": last_round()} | (extra_context or {})
        return super().changelist_view(request, context)

    def render_change_form(self, request, context, *args, obj=None, **kwargs):
        may = obj is not None and self.has_operate_permission(request)
        context["may_retry"] = may and obj.status in (TaskStatus.FAILED, TaskStatus.CANCELLED)
        context["may_cancel"] = may and obj.is_live
        context["dispatcher"] = last_round()
        return super().render_change_form(request, context, *args, obj=obj, **kwargs)

    def verb_view(self, request, pk, verb):
        """The buttons of one task's page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_operate_permission(request):
            raise PermissionDenied
        task = get_object_or_404(self.get_queryset(request), pk=pk)
        getattr(self, verb)(request, self.get_queryset(request).filter(pk=task.pk))
        return redirect("admin:tasks_backgroundtask_change", pk)

    # Actions

    @admin.action(
        description=gettext_lazy("Retry the failed and cancelled ones"), permissions=["operate"]
    )
    def retry(self, request, queryset):
        each_row(self, request, queryset, lambda task: verbs.retry(task, request.user))

    @admin.action(
        description=gettext_lazy("Cancel the waiting and running ones"), permissions=["operate"]
    )
    def cancel(self, request, queryset):
        each_row(self, request, queryset, lambda task: verbs.cancel(task, request.user))
