"""What people were told."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from tasks.admin import BigTable, ReadOnly
from tickets.models import Notification


class UnreadFilter(admin.SimpleListFilter):
    title = _("read")
    parameter_name = "unread"

    def lookups(self, request, model_admin):
        return [("1", _("unread")), ("0", _("read"))]

    def queryset(self, request, queryset):
        if self.value() in ("0", "1"):
            return queryset.filter(read_at__isnull=self.value() == "1")
        return queryset


@admin.register(Notification)
class NotificationAdmin(BigTable, ReadOnly, admin.ModelAdmin):
    list_select_related = ["user"]
    list_display = ["id", "user", "kind", "text", "ticket_link", "created_at", "read_at"]
    list_filter = ["kind", UnreadFilter, "created_at"]
    search_fields = ["user__username", "cause"]
    ordering = ["-id"]
    sortable_by = ["id"]
    fields = ["user", "kind", "text", "ticket_link", "url", "cause", "created_at", "read_at"]
    readonly_fields = ["ticket_link"]

    def get_queryset(self, request):
        return super().get_queryset(request).visible_to(request.user)

    @admin.display(description=_("ticket"))
    def ticket_link(self, notification):
        if notification.ticket_id is None:
            return "-"
        url = reverse("admin:tickets_ticket_change", args=[notification.ticket_id])
        return format_html('<a href="{}">#{}</a>', url, notification.ticket_id)
