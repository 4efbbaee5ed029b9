"""People who log in."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.utils.translation import gettext_lazy as _

from tasks.admin import Forgiving
from tickets.models import NotificationKind, User
from tickets.models.notification_kind import mail_field

from .team import MembershipInline

RIGHTS = ["is_staff", "is_superuser", "groups", "user_permissions"]


@admin.register(User)
class UserAdmin(Forgiving, DjangoUserAdmin):
    """People are made inactive, never deleted: a deletion would take their assignments from tickets
    without history, and their exports and notifications with it."""

    fieldsets = [
        *DjangoUserAdmin.fieldsets,
        (_("Preferences"), {"fields": ["language", "time_zone", "theme"]}),
        (_("Mail"), {"fields": [mail_field(kind) for kind in NotificationKind]}),
    ]
    add_fieldsets = [
        *DjangoUserAdmin.add_fieldsets,
        (
            _("Person"),
            {"fields": ["first_name", "last_name", "email", "language", "time_zone", "theme"]},
        ),
    ]
    list_display = ["username", "first_name", "last_name", "email", "is_active", "is_staff"]
    list_filter = ["is_active", "is_staff", "is_superuser", "groups"]
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    inlines = [MembershipInline]

    def get_inlines(self, request, obj):
        return self.inlines if obj else []  # first the log-in, then its teams

    def has_change_permission(self, request, obj=None):
        """Only superusers change superusers, or they could be locked out or taken over."""
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or not obj.is_superuser or request.user.is_superuser)

    def get_readonly_fields(self, request, obj=None):
        """Staff who may edit people cannot give rights, to themselves least of all."""
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else [*fields, *RIGHTS]

    def has_delete_permission(self, request, obj=None):
        return False
