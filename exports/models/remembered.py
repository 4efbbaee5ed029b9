"""What a person chose last for an export: what the next one's page starts with."""

from django.conf import settings
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from .choices import Delimiter, FileFormat


class RememberedChoicesQuerySet(models.QuerySet):
    def of(self, person) -> "RememberedChoices":
        """The person's row; an unsaved one without any choice if there is none yet."""
        return self.filter(person=person).first() or self.model(person=person)

    @transaction.atomic
    def remember(
        self,
        by,
        *,
        row_kind: str,
        columns: list[str],
        file_format: str,
        delimiter: str,
        time_zone: str,
    ) -> "RememberedChoices":
        """Keep these for the person's next export; columns for this kind of rows alone.

        Args:
            delimiter: empty where the format has none; the last one is kept then.
            time_zone: the person's own is not kept by its name, so that it follows their settings.
        """
        self.bulk_create([self.model(person=by)], ignore_conflicts=True)
        kept = self.select_for_update().get(person=by)
        kept.columns[str(row_kind)] = list(columns)
        kept.file_format = file_format
        kept.delimiter = delimiter or kept.delimiter
        kept.time_zone = "" if time_zone == by.zone.key else time_zone
        kept.save()
        return kept


class RememberedChoices(models.Model):
    """One row per person. Empty texts: nothing was chosen."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="+",
        verbose_name=_("person"),
    )
    # Keys in the file's order by RowKind. What is no column any more is left out when it is read.
    columns = models.JSONField(_("columns"), default=dict, blank=True)
    file_format = models.CharField(_("format"), max_length=10, choices=FileFormat, blank=True)
    delimiter = models.CharField(_("delimiter"), max_length=1, choices=Delimiter, blank=True)
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)

    objects = RememberedChoicesQuerySet.as_manager()

    class Meta:
        verbose_name = _("remembered choices")
        verbose_name_plural = _("remembered choices")

    def __str__(self):
        return f"{self._meta.verbose_name} {self.person_id}"
