"""What was told by mail, and what became of it."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy

from tasks.admin import BigTable, ReadOnly, each_row, verbs
from tickets.models import MailDelivery

NOTHING = "-"


@admin.register(MailDelivery)
class MailDeliveryAdmin(BigTable, ReadOnly, admin.ModelAdmin):
    """Retry is the ledger's, and needs ``tasks.change_backgroundtask`` as there."""

    list_select_related = ["recipient", "task"]
    list_display = [
        "id", "recipient", "address", "kind", "ticket_link", "status", "short_reason", "task_link",
        "created_at", "sent_at",
    ]  # fmt: skip
    list_filter = ["status", "kind", "task__status", "created_at", "sent_at"]
    search_fields = ["recipient__username", "address", "message_id"]
    ordering = ["-id"]
    sortable_by = ["id"]
    actions = ["retry"]
    fields = [
        "recipient", "address", "kind", "because", "ticket_link", "text", "url", "status", "reason",
        "answer", "sent_at", "created_at", "message_id", "cause", "task_link",
    ]  # fmt: skip
    readonly_fields = ["ticket_link", "task_link"]

    def get_queryset(self, request):
        return super().get_queryset(request).visible_to(request.user)

    def has_operate_permission(self, request):
        return request.user.has_perm("tasks.change_backgroundtask")

    @admin.display(description=gettext_lazy("ticket"))
    def ticket_link(self, delivery):
        if delivery.ticket_id is None:
            return NOTHING
        url = reverse("admin:tickets_ticket_change", args=[delivery.ticket_id])
        return format_html('<a href="{}">#{}</a>', url, delivery.ticket_id)

    @admin.display(description=gettext_lazy("background task"))
    def task_link(self, delivery):
        """With its state: a mail that is queued may wait, or its task may have been given up."""
        url = reverse("admin:tasks_backgroundtask_change", args=[delivery.task_id])
        return format_html(
            '<a href="{}">{} · {}</a>', url, delivery.task_id, delivery.task.get_status_display()
        )

    @admin.display(description=gettext_lazy("reason"))
    def short_reason(self, delivery):
        return Truncator(delivery.reason).chars(80)

    @admin.action(
        description=gettext_lazy("Retry the failed and cancelled ones"), permissions=["operate"]
    )
    def retry(self, request, queryset):
        each_row(self, request, queryset, lambda mail: verbs.retry(mail.task, request.user))
