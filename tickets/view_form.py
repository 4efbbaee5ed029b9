"""What a person says of a saved view; its filters are the list's."""

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.columns import COLUMNS, known_fields
from tickets.forms import Styled
from tickets.models import SavedView, Team


class SavedViewForm(Styled, forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=60)
    # Not "team", which is a filter of the list beside it.
    shared_with = forms.ChoiceField(label=gettext_lazy("Who sees it"), required=False)
    columns = forms.MultipleChoiceField(
        label=gettext_lazy("Columns"),
        choices=[(column.field, column.label) for column in COLUMNS],
        error_messages={"required": gettext_lazy("Choose at least one column.")},
        widget=forms.CheckboxSelectMultiple,
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, data=None, *, person, view: SavedView | None = None, initial: dict):
        super().__init__(data, initial=initial)
        teams = list(Team.objects.workable_by(person).order_by("name"))
        if view and view.team and view.team not in teams:
            teams.append(view.team)
        self._teams = {str(team.pk): team for team in teams}
        self.fields["shared_with"].choices = [
            ("", _("Only I")),
            *(
                (pk, _("All members of %(team)s") % {"team": team})
                for pk, team in self._teams.items()
            ),
        ]
        if view and view.owner_id != person.pk:
            del self.fields["shared_with"]

    @property
    def choices(self) -> dict:
        """What the verbs take, but for the filters."""
        chosen = {
            "name": self.cleaned_data["name"],
            "columns": known_fields(self.cleaned_data["columns"]),
        }
        if "shared_with" in self.fields:
            chosen["team"] = self._teams.get(self.cleaned_data["shared_with"])
        return chosen
