"""What a scheduled export exports, and when: taking it over from who chose it."""

from django.core.exceptions import ValidationError
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from exports import columns as csv_columns
from tickets.filters import TicketFilter
from tickets.models.user import validate_time_zone

from .choices import Delimiter, FileFormat, RowKind

FILE = ("row_kind", "file_format", "delimiter", "time_zone")
RHYTHM = ("rhythm", "weekdays", "day_of_month", "time_of_day", "zone")
_NAMES = {"name", "filters", "columns", *FILE, *RHYTHM}
_OFFERED = {"row_kind": RowKind, "file_format": FileFormat, "delimiter": Delimiter}


class Choosing:
    """Capability of ScheduledExport: its choices."""

    @property
    def rhythm_chosen(self) -> list:
        return [getattr(self, name) for name in RHYTHM]

    def _choose(self, choices: dict) -> None:
        """Take over these choices and no others.

        Raises:
            ValidationError: one that cannot be.
            TypeError: a choice that does not exist.
        """
        if unknown := set(choices) - _NAMES:
            raise TypeError(f"A scheduled export has no {', '.join(sorted(unknown))}.")
        with translation.override(self.owner.language or self.language):
            for name in {"name", *FILE, *RHYTHM} & set(choices):
                setattr(self, name, choices[name])
            self._settle_name()
            self._settle_rhythm()
            self._settle_file()
            columns = choices.get("columns", self.columns)
            self.columns = csv_columns.chosen(columns, self.row_kind)
            if "filters" in choices:
                self._choose_filters(choices["filters"])

    def _settle_name(self) -> None:
        self.name = self.name.strip()
        if not self.name:
            raise ValidationError({"name": _("Give it a name.")})
        limit = self._meta.get_field("name").max_length
        if len(self.name) > limit:
            raise ValidationError(
                {"name": _("A name has at most %(limit)d characters.") % {"limit": limit}}
            )

    def _settle_file(self) -> None:
        for name, offered in _OFFERED.items():
            if getattr(self, name) not in offered.values:
                raise ValidationError({name: _("Choose one of those that are offered.")})
        try:
            validate_time_zone(self.time_zone)
        except ValidationError as error:
            raise ValidationError({"time_zone": error.messages}) from error

    def _choose_filters(self, filters) -> None:
        """The same filters again keep the zone that their days were meant in."""
        with timezone.override(self.owner.zone):
            chosen = TicketFilter(filters, self.owner)
            if chosen.errors:
                raise ValidationError(chosen.complaints())
            if self.filters_zone and chosen.query == self.filters:
                return
            self.filters, self.filters_zone = chosen.query, self.owner.zone.key
            self.filters_shown = [[str(label), str(value)] for label, value in chosen.describe()]
