"""The dispatcher's one row: is it alive, and what did its last round do?"""

import json

from django.contrib import admin
from django.db.models.functions import Now
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.models import DispatcherStatus

from .rows import ReadOnly
from .text import preformatted, with_age


@admin.register(DispatcherStatus)
class DispatcherStatusAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["__str__", "succeeded", "failed", "last_seconds", "counts", "short_error"]
    fields = ["started", "succeeded", "last_seconds", "pretty_counts", "failed", "error_text"]
    readonly_fields = ["started", "succeeded", "failed", "pretty_counts", "error_text"]

    class Media:
        css = {"all": ["teamdesk/admin.css"]}

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(database_now=Now())

    @admin.display(description=gettext_lazy("last round started"))
    def started(self, status):
        return with_age(status.last_started_at, status.database_now)

    @admin.display(description=gettext_lazy("last successful round ended"))
    def succeeded(self, status):
        return with_age(status.last_succeeded_at, status.database_now)

    @admin.display(description=gettext_lazy("last failed round ended"))
    def failed(self, status):
        return with_age(status.last_failed_at, status.database_now)

    @admin.display(description=gettext_lazy("what the last round did"))
    def counts(self, status):
        done = {name: count for name, count in status.last_counts.items() if count}
        return ", ".join(f"{name} {count}" for name, count in done.items()) or _("nothing to do")

    @admin.display(description=gettext_lazy("what the last round did"))
    def pretty_counts(self, status):
        return preformatted(json.dumps(status.last_counts, ensure_ascii=False, indent=2))

    @admin.display(description=gettext_lazy("last error"))
    def short_error(self, status):
        return Truncator(status.last_error).chars(80)

    @admin.display(description=gettext_lazy("last error"))
    def error_text(self, status):
        return preformatted(status.last_error)


def last_round() -> str | None:
    """When the last successful round ended, with its age; None before the first."""
    status = DispatcherStatus.objects.annotate(database_now=Now()).filter(pk=1).first()
    if status is None or status.last_succeeded_at is None:
        return None
    return with_age(status.last_succeeded_at, status.database_now)
