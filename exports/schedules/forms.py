"""What a person chooses of a scheduled export, beside the filters."""

from django import forms
from django.http import QueryDict
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext_lazy

from exports import columns
from exports.models import Delimiter, FileFormat, Rhythm, RowKind
from exports.models.choosing import FILE, RHYTHM
from tickets.forms import Styled

# As the parameters of a new export are named.
_OF_THE_FILE = ("row_kind", "format", "delimiter", "time_zone")


class ScheduleForm(Styled, forms.Form):
    """It turns what was typed into values; the verbs judge them, and complain by the same names."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    rhythm = forms.ChoiceField(
        label=gettext_lazy("How often"), choices=Rhythm, initial=Rhythm.WEEKLY
    )
    weekdays = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Days of the week"),
        choices=[(number + 1, name) for number, name in WEEKDAYS.items()],
        coerce=int,
        required=False,
        initial=[1],
        widget=forms.CheckboxSelectMultiple,
    )
    day_of_month = forms.IntegerField(
        label=gettext_lazy("Day of the month"),
        required=False,
        initial=1,
        help_text=gettext_lazy("In a month that is too short its last day."),
        widget=forms.NumberInput(attrs={"min": 1, "max": 31}),
    )
    time_of_day = forms.TimeField(
        label=gettext_lazy("Time of day"),
        initial="08:00",
        widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"}),
    )
    zone = forms.CharField(label=gettext_lazy("Time zone"), max_length=64)
    format = forms.ChoiceField(
        label=gettext_lazy("Format"), choices=FileFormat, initial=FileFormat.CSV
    )
    delimiter = forms.ChoiceField(
        label=gettext_lazy("Delimiter"), choices=Delimiter, initial=Delimiter.COMMA
    )
    time_zone = forms.CharField(
        label=gettext_lazy("Time zone of the file"),
        max_length=64,
        required=False,
        help_text=gettext_lazy("Empty: the one in your settings."),
    )
    columns = forms.MultipleChoiceField(
        label=gettext_lazy("Columns"),
        error_messages={"required": gettext_lazy("Choose at least one column.")},
        widget=forms.CheckboxSelectMultiple,
    )
    row_kind = forms.ChoiceField(choices=RowKind, widget=forms.HiddenInput)

    def __init__(self, data=None, *, row_kind: str, initial: dict):
        """``row_kind`` decides which columns there are."""
        super().__init__(data, initial={"row_kind": row_kind} | initial)
        self.row_kind = row_kind
        offered = columns.COLUMNS_OF[row_kind]
        self.fields["columns"].choices = [(key, column.title) for key, column in offered.items()]
        self.fields["columns"].initial = columns.chosen(None, row_kind)
        for name in ("zone", "time_zone"):
            self.fields[name].widget.attrs |= {"list": "time-zones", "autocomplete": "off"}

    @property
    def choices(self) -> dict:
        """What the verbs take, but for the filters."""
        chosen = dict(self.cleaned_data)
        return chosen | {"file_format": chosen.pop("format")}


class OnceForm(forms.Form):
    key = forms.UUIDField(required=False)


def row_kind_in(parameters: QueryDict) -> str:
    given = parameters.get("row_kind", "")
    return given if given in RowKind.values else RowKind.TICKETS


def file_in(parameters: QueryDict, person) -> dict:
    """The choices of a file among these parameters, as the form's initial values."""
    found = {name: parameters[name] for name in _OF_THE_FILE if parameters.get(name)}
    if found.get("time_zone") == person.zone.key:
        found["time_zone"] = ""  # follows the person's settings
    keys = [key for key in parameters.getlist("columns") if key]
    return found | ({"columns": keys} if keys else {})


def values_of(scheduled) -> dict:
    """What the form's fields show for this scheduled export."""
    shown = {name: getattr(scheduled, name) for name in ("name", "columns", *FILE, *RHYTHM)}
    shown["format"] = shown.pop("file_format")
    # What its rhythm leaves out is offered with what a new one begins with.
    return {name: value for name, value in shown.items() if value not in (None, [])}
