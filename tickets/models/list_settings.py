"""How a person likes the ticket list: its columns, and the order of the saved views."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _


class ListSettingsQuerySet(models.QuerySet):
    def of(self, person) -> "ListSettings":
        """The person's row; an unsaved one that says nothing if there is none yet."""
        return self.filter(person=person).first() or self.model(person=person)

    # Verbs

    def remember_columns(self, by, columns: list[str]) -> None:
        """An empty list: the usual ones again."""
        self.update_or_create(person=by, defaults={"columns": columns})

    @transaction.atomic
    def move_view(self, by, view, places: int) -> bool:
        """Moves a saved view up (fewer than 0) or down in the person's own order. False: it is
        already first or last."""
        self.bulk_create([self.model(person=by)], ignore_conflicts=True)
        kept = self.select_for_update().get(person=by)
        views = kept.in_order(type(view).objects.visible_to(by))
        old = next((n for n, each in enumerate(views) if each.pk == view.pk), None)
        if old is None:
            return False
        new = min(max(old + places, 0), len(views) - 1)
        views.insert(new, views.pop(old))
        kept.view_order = [each.pk for each in views]
        kept.save()
        return new != old


class ListSettings(models.Model):
    """One row per person, theirs alone. What it names may be gone or out of sight by now."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="+",
        verbose_name=_("person"),
    )
    columns = ArrayField(
        models.CharField(max_length=30), verbose_name=_("columns"), default=list, blank=True
    )
    view_order = ArrayField(
        models.BigIntegerField(), verbose_name=_("order of the views"), default=list, blank=True
    )

    objects = ListSettingsQuerySet.as_manager()

    class Meta:
        verbose_name = _("settings of the list")
        verbose_name_plural = _("settings of the list")

    def __str__(self):
        return f"{self._meta.verbose_name} {self.person_id}"

    # Questions

    def in_order(self, views) -> list:
        """As the person put them; new ones follow, their own before shared ones."""
        places = {pk: place for place, pk in enumerate(self.view_order)}
        last = len(places)
        return sorted(
            views,
            key=lambda view: (
                places.get(view.pk, last), view.is_shared, view.name.casefold(), view.pk
            ),
        )  # fmt: skip
