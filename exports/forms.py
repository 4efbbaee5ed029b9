"""What a person chooses for an export, beside the filters."""

import uuid

from django import forms
from django.conf.locale import LANG_INFO
from django.core.exceptions import ValidationError
from django.utils import formats
from django.utils.text import capfirst
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.utils.translation.trans_real import parse_accept_lang_header

from exports import columns
from exports.models import Delimiter, FileFormat, RememberedChoices, RowKind
from exports.parameters import OF_THE_FILE
from tickets.columns import USUAL_FIELDS, known_fields
from tickets.models import ListSettings
from tickets.models.user import validate_time_zone

MOST_ROWS = 2**63 - 1  # that the database can write down


class Choice(forms.ChoiceField):
    """Programs may leave it out and get ``default``. A wrong value is told which there are."""

    def __init__(self, *, choices, default: str, **options):
        offered = [(value, capfirst(label)) for value, label in choices.choices]
        super().__init__(choices=offered, required=False, **options)
        self._default = default

    def validate(self, value):
        known = [each for each, _label in self.choices]
        if value and value not in known:
            raise ValidationError(
                _("“%(value)s” is none of these: %(known)s.")
                % {"value": value[:100], "known": " ".join(map(repr, known))}
            )

    def clean(self, value):
        return super().clean(value) or self._default


class Columns(forms.MultipleChoiceField):
    """Programs may leave columns out and get the usual ones; a person who unticks every box (the
    page sends an empty one along) made a mistake."""

    widget = forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"})

    def clean(self, value):
        return [key for key in value if key] if value else None


class ExportForm(forms.Form):
    """``key`` is made anew for each page shown, so that a double click is one export.

    ``announced_rows`` and ``shown_kind`` are what the page showed: its number of rows, and the kind
    of rows that number and columns belong to. Programs send neither.
    """

    row_kind = Choice(
        label=gettext_lazy("each row is"),
        choices=RowKind,
        default=RowKind.TICKETS,
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
    )
    columns = Columns(label=gettext_lazy("columns"))
    format = Choice(
        label=gettext_lazy("format"),
        choices=FileFormat,
        default=FileFormat.CSV,
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    delimiter = Choice(
        label=gettext_lazy("delimiter"),
        choices=Delimiter,
        default=Delimiter.COMMA,
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text=gettext_lazy("Between the cells. Many spreadsheets in Europe expect semicolons."),
    )
    time_zone = forms.CharField(
        label=gettext_lazy("time zone"),
        required=False,
        validators=[validate_time_zone],
        widget=forms.TextInput(
            attrs={"class": "form-control", "list": "time-zones", "autocomplete": "off"}
        ),
        help_text=gettext_lazy("Times in the file are in this zone."),
    )
    key = forms.UUIDField(required=False, widget=forms.HiddenInput)
    announced_rows = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_ROWS, widget=forms.HiddenInput
    )
    shown_kind = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, data=None, initial=None):
        super().__init__(data, initial=initial)
        self.offered_kind = RowKind.TICKETS
        asked = self["row_kind"].value()
        if asked in RowKind.values:
            self.offered_kind = RowKind(asked)
        self.fields["columns"].choices = [
            (key, column.title) for key, column in columns.COLUMNS_OF[self.offered_kind].items()
        ]

    @classmethod
    def offered_to(cls, person, parameters, languages: str) -> "ExportForm":
        """An unbound form: what ``parameters`` ask for, or else what the person chose last, or else
        what suits them.

        Args:
            parameters: a QueryDict; values that cannot be are ignored.
            languages: the browser's ``Accept-Language``.
        """
        kept = RememberedChoices.objects.of(person)
        asked = cls(parameters)
        asked.is_valid()
        chosen = {
            name: value
            for name, value in asked.cleaned_data.items()
            if name in OF_THE_FILE and parameters.get(name) and value
        }
        row_kind = chosen.get("row_kind", RowKind.TICKETS)
        start = {
            "row_kind": row_kind,
            "columns": _known(kept.columns.get(row_kind), row_kind) or _usual(row_kind, person),
            "format": kept.file_format or FileFormat.CSV,
            "delimiter": kept.delimiter or usual_delimiter(person.language, languages),
            "time_zone": kept.time_zone or person.zone.key,
        }
        return cls(initial=start | chosen | {"key": uuid.uuid4(), "shown_kind": row_kind})

    @property
    def asks_for_a_look(self) -> bool:
        """The page's columns and number are of another kind of rows than the one that was chosen on
        it: without a script they could not follow."""
        shown = self.data.get("shown_kind")
        return shown in RowKind.values and shown != self.offered_kind

    def clean(self):
        cleaned = super().clean()
        if "columns" in cleaned and "row_kind" in cleaned:
            try:
                cleaned["columns"] = columns.chosen(cleaned["columns"], cleaned["row_kind"])
            except ValidationError as error:
                self.add_error("columns", error)
        if "format" in cleaned and not FileFormat(cleaned["format"]).has_delimiter:
            cleaned["delimiter"] = ""
        return cleaned

    def file_choices(self) -> dict:
        """What ``Export.objects.request`` takes."""
        cleaned = self.cleaned_data
        return {
            "row_kind": cleaned["row_kind"],
            "file_format": cleaned["format"],
            "delimiter": cleaned["delimiter"] or Delimiter.COMMA,
            "time_zone": cleaned["time_zone"],
            "announced_rows": cleaned["announced_rows"],
        }

    def remember(self, by) -> None:
        """Keep what was chosen on the page for the person's next export."""
        cleaned = self.cleaned_data
        RememberedChoices.objects.remember(
            by,
            row_kind=cleaned["row_kind"],
            columns=cleaned["columns"],
            file_format=cleaned["format"],
            delimiter=cleaned["delimiter"],
            time_zone=cleaned["time_zone"],
        )


def usual_delimiter(language: str, languages: str) -> str:
    """A semicolon where people write a comma in decimal numbers: spreadsheets there expect it.

    Args:
        language: the person's setting; empty if they left it to the browser.
        languages: the browser's ``Accept-Language``. It may prefer a language that TeamDesk does
            not speak, and the spreadsheet beside it speaks that one too.
    """
    preferred = [name for name, _weight in parse_accept_lang_header(languages)]
    named = (language or next(iter(preferred), "") or get_language() or "").lower()
    # Only names that Django knows: it keeps the formats of each in memory.
    spoken = next((name for name in (named, named.partition("-")[0]) if name in LANG_INFO), "en")
    writes_comma = formats.get_format("DECIMAL_SEPARATOR", lang=spoken, use_l10n=True) == ","
    return Delimiter.SEMICOLON if writes_comma else Delimiter.COMMA


def _known(keys: list[str] | None, row_kind: str) -> list[str]:
    return [key for key in columns.COLUMNS_OF[row_kind] if key in (keys or ())]


def _usual(row_kind: str, person) -> list[str]:
    """Of tickets the columns that the list shows them."""
    if row_kind == RowKind.TICKETS:
        visible = known_fields(ListSettings.objects.of(person).columns)
        return _known(visible or USUAL_FIELDS, row_kind)
    return columns.chosen(None, row_kind)
