"""The days that a dashboard tells of."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.utils import timezone

LENGTHS = (7, 30, 90)  # days, today included
USUAL = 30


@dataclass(frozen=True)
class Period:
    """``days`` whole days of the active time zone, of which the last is today."""

    days: int
    today: date

    @classmethod
    def of(cls, text: str) -> "Period":
        """That ``text`` names; the usual one if it names none."""
        days = int(text) if text in map(str, LENGTHS) else USUAL
        return cls(days, timezone.localdate())

    @property
    def first(self) -> date:
        return self.today - timedelta(days=self.days - 1)

    @property
    def begins_at(self) -> datetime:
        return start_of(self.first)

    @property
    def ends_at(self) -> datetime:
        """The moment after it."""
        return start_of(self.today + timedelta(days=1))

    def each_day(self) -> list[date]:
        return [self.first + timedelta(days=number) for number in range(self.days)]


def start_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
