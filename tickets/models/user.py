"""People who log in, with how they like to see things."""

import zoneinfo

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from .notification_kind import mail_field


class Theme(models.TextChoices):
    AUTO = "", _("like the system")
    LIGHT = "light", _("light")
    DARK = "dark", _("dark")


def time_zones() -> set[str]:
    """Names of zones. Not the machine's own, which PostgreSQL, the writer of exports, has not."""
    return zoneinfo.available_timezones() - {"localtime", "Factory"}


def validate_time_zone(name: str) -> None:
    if name and name not in time_zones():
        raise ValidationError(_("“%(name)s” is not a known time zone."), params={"name": name})


def language_of(person) -> str:
    """The language of what the person reads away from a browser."""
    return person.language or settings.LANGUAGE_CODE


class User(AbstractUser):
    language = models.CharField(
        _("language"),
        max_length=10,
        choices=[("", _("like the browser")), *settings.LANGUAGES],
        blank=True,
        default="",
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        validators=[validate_time_zone],
        help_text=_("For example Europe/Berlin or Asia/Shanghai. Empty: the server's."),
    )
    theme = models.CharField(
        _("theme"), max_length=5, choices=Theme, blank=True, default=Theme.AUTO
    )

    # What is told by mail too, one field for each NotificationKind.
    mail_reminder = models.BooleanField(_("mail when a ticket of theirs is due"), default=True)
    mail_assigned = models.BooleanField(_("mail when a ticket is assigned to them"), default=True)
    mail_commented = models.BooleanField(
        _("mail when someone comments on a ticket of theirs"), default=False
    )
    mail_export_ready = models.BooleanField(_("mail when their export is ready"), default=True)
    mail_export_paused = models.BooleanField(
        _("mail when a scheduled export of theirs is paused"), default=True
    )

    # Questions

    def wants_mail(self, kind: str) -> bool:
        return getattr(self, mail_field(kind), False)

    @property
    def display_name(self) -> str:
        return self.get_full_name() or self.username

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        """The person's time zone, or the server's."""
        return zoneinfo.ZoneInfo(self.time_zone or settings.TIME_ZONE)
