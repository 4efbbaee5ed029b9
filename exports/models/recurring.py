"""When a scheduled export is due: on which days, at which local time, by whose clocks."""

import calendar
from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import formats
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.models.user import validate_time_zone

_LONGEST_WAIT = 64  # days; two months, each with its day


class Rhythm(models.TextChoices):
    DAILY = "daily", gettext_lazy("every day")
    WEEKLY = "weekly", gettext_lazy("on days of the week")
    MONTHLY = "monthly", gettext_lazy("on a day of the month")


class Recurring:
    """Capability of ScheduledExport: its rhythm. ``weekdays`` are ISO 8601's: Monday is 1."""

    def next_after(self, moment: datetime) -> datetime:
        """The first time it is due after ``moment``, in UTC."""
        zone = ZoneInfo(self.zone)
        # From the day before: what does not exist on it may be due at the start of this one.
        day = moment.astimezone(zone).date() - timedelta(days=1)
        for _number in range(_LONGEST_WAIT):
            if self._falls_on(day):
                due_at = moment_of(day, self.time_of_day, zone)
                if due_at > moment:
                    return due_at
            day += timedelta(days=1)
        raise AssertionError(f"{self!r} is never due.")

    def _falls_on(self, day: date) -> bool:
        match self.rhythm:
            case Rhythm.WEEKLY:
                return day.isoweekday() in self.weekdays
            case Rhythm.MONTHLY:
                last = calendar.monthrange(day.year, day.month)[1]
                return day.day == min(self.day_of_month, last)
        return True

    def rhythm_in_words(self) -> str:
        """``Every Monday, Friday at 8 a.m. (Europe/Berlin)``, in the active language."""
        if self.rhythm == Rhythm.WEEKLY:
            sentence = _("Every %(days)s at %(time)s (%(zone)s)")
        elif self.rhythm == Rhythm.MONTHLY and self.day_of_month == 31:
            sentence = _("On the last day of every month at %(time)s (%(zone)s)")
        elif self.rhythm == Rhythm.MONTHLY and self.day_of_month > 28:
            sentence = _("On day %(day)s of every month, or its last, at %(time)s (%(zone)s)")
        elif self.rhythm == Rhythm.MONTHLY:
            sentence = _("On day %(day)s of every month at %(time)s (%(zone)s)")
        else:
            sentence = _("Every day at %(time)s (%(zone)s)")
        return sentence % {
            "days": ", ".join(str(WEEKDAYS[number - 1]) for number in self.weekdays),
            "day": self.day_of_month,
            "time": formats.time_format(self.time_of_day, "TIME_FORMAT"),
            "zone": self.zone,
        }

    def _settle_rhythm(self) -> None:
        """Check it, and leave out what another rhythm would need.

        Raises:
            ValidationError: by field.
        """
        if self.rhythm not in Rhythm.values:
            raise ValidationError({"rhythm": _("Choose how often.")})
        self.time_of_day = self.time_of_day.replace(second=0, microsecond=0)
        self.weekdays = sorted(set(self.weekdays or [])) if self.rhythm == Rhythm.WEEKLY else []
        if self.rhythm != Rhythm.MONTHLY:
            self.day_of_month = None
        elif not 1 <= (self.day_of_month or 0) <= 31:
            raise ValidationError({"day_of_month": _("Choose a day from 1 to 31.")})
        if self.rhythm == Rhythm.WEEKLY and not self.weekdays:
            raise ValidationError({"weekdays": _("Choose at least one day.")})
        if not set(self.weekdays) <= set(range(1, 8)):
            raise ValidationError({"weekdays": _("Days of the week are numbered from 1 to 7.")})
        try:
            validate_time_zone(self.zone)
        except ValidationError as error:
            raise ValidationError({"zone": error.messages}) from error
        if not self.zone:
            raise ValidationError({"zone": _("Choose a time zone.")})


def moment_of(day: date, at: time, zone: ZoneInfo) -> datetime:
    """When the clocks of ``zone`` show ``at`` on ``day``, in UTC: the first time, if they show it
    twice; if they skip it, the first moment after the gap.

    By zoneinfo, whose ``fold`` tells both cases (PEP 495). PostgreSQL's AT TIME ZONE would take the
    second of two, and what the gap skips as late after it as it was meant to be after its start.
    """
    shown = datetime.combine(day, at, zone)
    again = shown.replace(fold=1)
    before = shown.utcoffset()
    if again.utcoffset() <= before:  # they show it, once or twice
        return shown.astimezone(UTC)
    # In a gap the two are moments on both sides of the change, which lies between.
    early, late = again.astimezone(UTC), shown.astimezone(UTC)

    def is_past_the_change(seconds: int) -> bool:
        return (early + timedelta(seconds=seconds)).astimezone(zone).utcoffset() != before

    between = range(int((late - early).total_seconds()) + 1)
    return early + timedelta(seconds=bisect_left(between, True, key=is_past_the_change))
