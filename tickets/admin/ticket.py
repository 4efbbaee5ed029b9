"""Tickets for staff. What may be seen and changed is decided where it always is: by team.

A permission of Django's says that a member of staff may use these pages; which tickets they show
and change follows from the teams, so the admin is no back door.
"""

import re

from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tasks.admin import BigTable, Outcome, ReadOnly, each_row
from tickets.models import Comment, Team, Ticket, TicketEvent, TicketPriority

from .choosing import Autocompleting
from .ticket_form import LocalMoment, TicketForm


class TeamFilter(admin.SimpleListFilter):
    title = gettext_lazy("team")
    parameter_name = "team"

    def lookups(self, request, model_admin):
        return list(Team.objects.visible_to(request.user).values_list("pk", "name"))

    def queryset(self, request, queryset):
        # Only a choice of the list: anything else is no number.
        if self.value() in {str(pk) for pk, _name in self.lookup_choices}:
            return queryset.filter(team=self.value())
        return queryset


class ConcernFilter(admin.SimpleListFilter):
    title = gettext_lazy("concern")
    parameter_name = "concern"

    def lookups(self, request, model_admin):
        return [
            ("mine", _("assigned to me")),
            ("nobody", _("assigned to nobody")),
            ("live", _("not finished")),
            ("overdue", _("overdue")),
        ]

    def queryset(self, request, queryset):
        match self.value():
            case "mine":
                return queryset.filter(assignee=request.user)
            case "nobody":
                return queryset.filter(assignee=None)
            case "live":
                return queryset.live()
            case "overdue":
                return queryset.overdue()
        return queryset


class TicketEventInline(ReadOnly, admin.TabularInline):
    model = TicketEvent
    ordering = ["-at", "-id"]
    fields = ["at", "who", "kind", "what", "old", "new", "rule"]
    readonly_fields = ["who", "what", "old", "new", "rule"]

    def has_view_permission(self, request, obj=None):
        return True  # who may see the ticket sees its history

    @admin.display(description=gettext_lazy("who"))
    def who(self, event):
        return event.actor_text or _("the system")

    @admin.display(description=gettext_lazy("field"))
    def what(self, event):
        return event.field_display

    @admin.display(description=gettext_lazy("old"))
    def old(self, event):
        return event.old_display

    @admin.display(description=gettext_lazy("new"))
    def new(self, event):
        return event.new_display

    @admin.display(description=gettext_lazy("rule"))
    def rule(self, event):
        return event.reason_display


class CommentInline(ReadOnly, admin.TabularInline):
    """Comments are written on the ticket's own page."""

    model = Comment
    ordering = ["-created_at", "-id"]
    fields = ["created_at", "author_text", "is_public", "body"]

    def has_view_permission(self, request, obj=None):
        return True


def _action_of(name: str, description, verb):
    """An admin action that calls ``verb(ticket, by)`` for each ticket."""

    @admin.action(description=description, permissions=["change"])
    def action(model_admin, request, queryset):
        each_row(model_admin, request, queryset, lambda ticket: _try(ticket, verb, request.user))

    action.__name__ = name
    return action


def _try(ticket: Ticket, verb, by) -> Outcome:
    try:
        if verb(ticket, by):
            return messages.SUCCESS, _("Changed")
    except ValidationError as error:
        return messages.ERROR, _("Not changed, %(why)s") % {"why": " ".join(error.messages)}
    except PermissionDenied as error:
        return messages.ERROR, _("Not changed, %(why)s") % {"why": error}
    return messages.WARNING, _("Nothing to change")


def _set_priority(priority: TicketPriority):
    description = {
        TicketPriority.LOW: gettext_lazy("Set the priority to low"),
        TicketPriority.NORMAL: gettext_lazy("Set the priority to normal"),
        TicketPriority.HIGH: gettext_lazy("Set the priority to high"),
        TicketPriority.URGENT: gettext_lazy("Set the priority to urgent"),
    }[priority]
    return _action_of(
        f"priority_{priority}", description, lambda ticket, by: ticket.set_priority(priority, by=by)
    )


@admin.register(Ticket)
class TicketAdmin(BigTable, Autocompleting, admin.ModelAdmin):
    """Every change goes through the verbs and so into the history.

    Tickets are closed, not deleted: history, comments and notifications would go with them.
    """

    form = TicketForm
    list_per_page = 50
    list_select_related = ["team", "assignee"]
    change_list_template = "admin/tickets/ticket/change_list.html"
    list_display = [
        "id", "subject", "team", "status", "priority", "assignee", "due_at", "updated_at",
    ]  # fmt: skip
    list_display_links = ["id", "subject"]
    list_filter = [
        "status",
        "priority",
        TeamFilter,
        ConcernFilter,
        ("created_at", admin.DateFieldListFilter),
        ("due_at", admin.DateFieldListFilter),
    ]
    search_fields = ["subject", "requester_name", "requester_email"]
    search_help_text = gettext_lazy("A ticket's number, or words of its subject or requester.")
    ordering = ["-updated_at", "-id"]
    autocomplete_fields = ["team", "assignee"]
    actions = [
        _action_of(
            "assign_to_me",
            gettext_lazy("Assign to me"),
            lambda ticket, by: ticket.assign(by, by=by),
        ),
        _action_of("resolve", gettext_lazy("Resolve"), lambda ticket, by: ticket.resolve(by=by)),
        _action_of("close", gettext_lazy("Close"), lambda ticket, by: ticket.close(by=by)),
        *[_set_priority(priority) for priority in TicketPriority],
    ]
    inlines = [CommentInline, TicketEventInline]
    fieldsets = [
        (None, {"fields": ["subject", "description"]}),
        (
            gettext_lazy("Work"),
            {"fields": [("team", "assignee"), ("status", "priority"), "due_at", "tags"]},
        ),
        (gettext_lazy("Requester"), {"fields": [("requester_name", "requester_email")]}),
    ]
    record = (
        gettext_lazy("Record"),
        {
            "fields": [
                ("creator", "external_id"),
                ("created_at", "updated_at"),
                ("first_responded_at", "resolved_at", "closed_at"),
            ]
        },
    )
    readonly_fields = [
        "creator", "external_id", "created_at", "updated_at", "first_responded_at", "resolved_at",
        "closed_at",
    ]  # fmt: skip

    class Media:
        css = {"all": ["teamdesk/admin.css"]}

    def get_queryset(self, request):
        return super().get_queryset(request).visible_to(request.user)

    def get_search_results(self, request, queryset, search_term):
        if number := re.fullmatch(r"#?([0-9]{1,18})", search_term.strip()):
            return queryset.filter(pk=number[1]), False
        return super().get_search_results(request, queryset, search_term)

    def get_fieldsets(self, request, obj=None):
        if obj is None:
            return self.fieldsets
        if not self.has_change_permission(request, obj):
            return [*self.fieldsets, self.record]
        seen = (None, {"fields": ["version_seen"]})
        return [*self.fieldsets, self.record, seen]

    def get_inlines(self, request, obj):
        return self.inlines if obj else []

    def get_form(self, request, obj=None, **kwargs):
        form = super().get_form(request, obj, **kwargs)
        return type(form.__name__, (form,), {"actor": request.user})

    def formfield_for_dbfield(self, db_field, request, **kwargs):
        if db_field.name == "tags":
            kwargs["widget"] = AdminTextInputWidget()
            kwargs["help_text"] = _("Separated by commas.")
        if db_field.name == "due_at":
            kwargs["form_class"] = LocalMoment
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def formfield_for_foreignkey(self, db_field, request, **kwargs):
        if db_field.name == "team":
            kwargs["queryset"] = Team.objects.workable_by(request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request, obj, form, change):
        """The form's verb has saved it."""

    def has_change_permission(self, request, obj=None):
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or obj.team.is_workable_by(request.user))

    def has_delete_permission(self, request, obj=None):
        return False
