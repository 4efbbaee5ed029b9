"""Filters of the ledger's list."""

from django.contrib import admin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks import registry
from tasks.models import TaskStatus


class KindFilter(admin.SimpleListFilter):
    """The registered kinds; those found in the table would cost a scan of it on every page."""

    title = gettext_lazy("kind")
    parameter_name = "kind"

    def lookups(self, request, model_admin):
        return [(name, name) for name in sorted(registry.kinds())]

    def queryset(self, request, queryset):
        return queryset.filter(kind=self.value()) if self.value() else queryset


class ConcernFilter(admin.SimpleListFilter):
    title = gettext_lazy("concern")
    parameter_name = "concern"

    def lookups(self, request, model_admin):
        return [
            ("lease", _("running without a sign of life")),
            ("error", _("has an error")),
            ("unseen", _("waiting, never handed to the queue")),
        ]

    def queryset(self, request, queryset):
        match self.value():
            case "lease":
                return queryset.filter(lease_expired=True)
            case "error":
                return queryset.exclude(last_error="")
            case "unseen":
                return queryset.filter(status=TaskStatus.WAITING, dispatched_at=None)
        return queryset
