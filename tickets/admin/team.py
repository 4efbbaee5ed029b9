"""Teams and who belongs to them."""

from django.contrib import admin
from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from tasks.admin import Forgiving
from tickets.models import Membership, Team

from .choosing import Autocompleting


class MembershipInline(Autocompleting, admin.TabularInline):
    """On a team's page and on a person's; what the page is about is not asked again."""

    model = Membership
    extra = 0
    autocomplete_fields = ["team", "user"]


@admin.register(Team)
class TeamAdmin(Forgiving, admin.ModelAdmin):
    """A team with tickets cannot be deleted: their history would go with it."""

    list_display = ["name", "slug", "members_count", "created_at"]
    search_fields = ["name", "slug"]
    show_facets = admin.ShowFacets.NEVER
    prepopulated_fields = {"slug": ["name"]}
    inlines = [MembershipInline]

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(members_count=Count("memberships"))

    @admin.display(description=_("members"), ordering="members_count")
    def members_count(self, team):
        return team.members_count

    def has_delete_permission(self, request, obj=None):
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or not obj.tickets.exists())

    def get_actions(self, request):
        # Deleting many asks the database for every ticket of theirs, to list them.
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions
