"""The form that changes many tickets: which, and what about them."""

import re

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.forms import MomentField, Styled
from tickets.models import Team, TicketPriority, TicketStatus, User
from tickets.models.bulk_edit import MAX_BULK, too_many
from tickets.models.editable import Tags
from tickets.models.team import WORKING_ROLES

_LEAVE = ("", gettext_lazy("leave as it is"))
_TICKETS = re.compile("[0-9]{1,18}:[0-9]{1,9}")


class TagsField(forms.CharField):
    def clean(self, value):
        return Tags().clean(super().clean(value))


class SeenTickets(forms.CharField):
    """``17:3,18:1``: tickets with the version that the page showed, as a dict."""

    widget = forms.HiddenInput

    def clean(self, value) -> dict[int, int]:
        parts = [part for part in str(value or "").split(",") if part]
        if not parts:
            raise forms.ValidationError(_("Choose at least one ticket."))
        if len(parts) > MAX_BULK:
            raise forms.ValidationError(too_many(len(parts)))
        if not all(_TICKETS.fullmatch(part) for part in parts):
            raise forms.ValidationError(_("Choose the tickets again; this form is damaged."))
        pairs = [part.split(":") for part in parts]
        # The column's largest number; a larger one is no version that anybody saw.
        return {int(pk): min(int(version), 2**31 - 1) for pk, version in pairs}


class BulkForm(Styled, forms.Form):
    tickets = SeenTickets()
    status = forms.ChoiceField(
        label=gettext_lazy("Status"), choices=[_LEAVE, *TicketStatus.choices], required=False
    )
    priority = forms.ChoiceField(
        label=gettext_lazy("Priority"), choices=[_LEAVE, *TicketPriority.choices], required=False
    )
    assignee = forms.ChoiceField(label=gettext_lazy("Assignee"), required=False)
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"),
        queryset=Team.objects.none(),
        required=False,
    )
    add_tags = TagsField(
        label=gettext_lazy("Add tags"),
        required=False,
        help_text=gettext_lazy("Separated by commas."),
    )
    remove_tags = TagsField(
        label=gettext_lazy("Remove tags"),
        required=False,
        help_text=gettext_lazy("Separated by commas."),
    )
    due_at = MomentField(
        label=gettext_lazy("Due"),
        required=False,
        help_text=gettext_lazy("Empty leaves it as it is."),
    )
    clear_due = forms.BooleanField(label=gettext_lazy("Clear the due date"), required=False)

    def __init__(self, data=None, *, user, **kwargs):
        self.user = user
        super().__init__(data, **kwargs)
        teams = Team.objects.workable_by(user).order_by("name")
        self.fields["team"].queryset = teams
        self.fields["team"].empty_label = capfirst(_LEAVE[1])
        able = User.objects.filter(
            is_active=True, memberships__team__in=teams, memberships__role__in=WORKING_ROLES
        ).distinct()
        self.people = {str(person.pk): person for person in able.order_by("first_name", "username")}
        self.fields["assignee"].choices = [
            (_LEAVE[0], capfirst(_LEAVE[1])),
            ("me", capfirst(_("me"))),
            ("none", capfirst(_("nobody"))),
            *[(pk, person.display_name) for pk, person in self.people.items()],
        ]

    def clean(self):
        cleaned = super().clean()
        if cleaned.get("clear_due") and cleaned.get("due_at"):
            self.add_error("due_at", _("Set a due date or clear it, not both."))
        return cleaned

    @property
    def changes(self) -> dict:
        """New values by field, of a valid form; what was left as it is is not in it."""
        chosen = self.cleaned_data
        changes = {
            name: chosen[name] for name in ("status", "priority", "team", "due_at") if chosen[name]
        }
        if chosen["assignee"]:
            people = self.people | {"me": self.user, "none": None}
            changes["assignee"] = people[chosen["assignee"]]
        if chosen["clear_due"]:
            changes["due_at"] = None
        return changes
