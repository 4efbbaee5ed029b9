"""How each attempt of a task went, on the task's page."""

from django.contrib import admin
from django.utils.translation import gettext_lazy

from tasks.models import TaskAttempt

from .rows import ReadOnly
from .text import preformatted, to_the_second


class AttemptInline(ReadOnly, admin.StackedInline):
    model = TaskAttempt
    ordering = ["-id"]
    extra = 0
    fields = [("outcome", "worker", "execution_id"), ("started", "finished"), "error_text", "trace"]
    readonly_fields = ["started", "finished", "error_text", "trace"]

    def has_view_permission(self, request, obj=None):
        return True  # who may see the task sees how it went

    @admin.display(description=gettext_lazy("started"))
    def started(self, attempt):
        return to_the_second(attempt.started_at)

    @admin.display(description=gettext_lazy("finished"))
    def finished(self, attempt):
        return to_the_second(attempt.finished_at)

    @admin.display(description=gettext_lazy("error"))
    def error_text(self, attempt):
        return preformatted(attempt.error)

    @admin.display(description=gettext_lazy("traceback"))
    def trace(self, attempt):
        return preformatted(attempt.traceback)
