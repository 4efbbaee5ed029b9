"""Periodic chores: when was each inserted last, and what became of it?"""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks import registry
from tasks.models import BackgroundTask, Chore

from .rows import ReadOnly
from .text import NOTHING, to_the_second


@admin.register(Chore)
class ChoreAdmin(ReadOnly, admin.ModelAdmin):
    ordering = ["kind"]
    list_display = ["kind", "rhythm", "slot", "last_task"]
    list_display_links = None  # the row says all there is
    sortable_by = []

    class Media:
        css = {"all": ["teamdesk/admin.css"]}

    @admin.display(description=gettext_lazy("every"))
    def rhythm(self, chore):
        kind = registry.kinds().get(chore.kind)
        return str(kind.every) if kind and kind.every else _("not any more")

    @admin.display(description=gettext_lazy("last slot"))
    def slot(self, chore):
        return to_the_second(chore.slot_at)

    @admin.display(description=gettext_lazy("last task"))
    def last_task(self, chore):
        task = BackgroundTask.objects.filter(pk=chore.task_id).only("status").first()
        if task is None:  # pruned
            return NOTHING
        url = reverse("admin:tasks_backgroundtask_change", args=[task.pk])
        return format_html('<a href="{}">#{}</a> {}', url, task.pk, task.get_status_display())
