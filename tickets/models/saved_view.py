"""A saved view: a list of tickets that somebody gave a name, for themselves or for a team."""

from datetime import date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .team import Membership, Role, Team
from .user import User

MOST_VIEWS = 100  # that one person may have; the list counts only the first of them


class ViewChanged(Exception):
    """Another person changed the view since it was read. ``view`` is as it is now."""

    def __init__(self, view: "SavedView"):
        super().__init__(view)
        self.view = view


class SavedViewQuerySet(models.QuerySet):
    # Selections

    def visible_to(self, user):
        """One's own private ones, and those that are shared with a team whose tickets one may
        read: who leaves a team leaves its views there, those they made too."""
        if not user.is_active:
            return self.none()
        return self.filter(
            Q(team=None, owner=user) | Q(team__in=Team.objects.visible_to(user).values("pk"))
        )

    # Verbs

    @transaction.atomic
    def save_view(self, by, **choices) -> "SavedView":
        """Keep a list under a name.

        Args:
            choices: ``name``; ``filters`` as ``TicketFilter.query``, whose days are those of
                ``zone``, a time zone's name; ``columns``, names of fields; ``team`` to share it
                with, or None.

        Raises:
            ValidationError: too many already, or a team whose tickets one may not work on.
        """
        # Two at once count one after the other.
        User.objects.select_for_update(no_key=True).get(pk=by.pk)
        if self.filter(owner=by).count() >= MOST_VIEWS:
            raise ValidationError(
                _("You have %(limit)d views already. Delete one, or change it instead.")
                % {"limit": MOST_VIEWS}
            )
        view = self.model(owner=by, **choices)
        view._refuse_team_of_others(by)
        view.full_clean(exclude=["owner", "team"])
        view.save(force_insert=True)
        return view


class SavedView(models.Model):
    """It holds parameters and no tickets: whoever opens it sees what they may see. ``me`` among the
    filters is whoever looks, ``today`` is their today."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="+",
        verbose_name=gettext_lazy("owner"),
    )
    # A team that is deleted leaves its views to those who made them.
    team = models.ForeignKey(
        Team,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=gettext_lazy("shared with"),
    )
    name = models.CharField(gettext_lazy("name"), max_length=60)
    filters = models.JSONField(gettext_lazy("filters"), default=dict, blank=True)
    zone = models.CharField(gettext_lazy("time zone of the filters"), max_length=64)
    columns = ArrayField(
        models.CharField(max_length=30), verbose_name=gettext_lazy("columns"), default=list
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(gettext_lazy("created"), db_default=Now(), editable=False)

    objects = SavedViewQuerySet.as_manager()

    class Meta:
        verbose_name = gettext_lazy("saved view")
        verbose_name_plural = gettext_lazy("saved views")

    def __str__(self):
        return self.name

    # Questions

    @property
    def is_shared(self) -> bool:
        return self.team_id is not None

    def is_changeable_by(self, user) -> bool:
        """By its owner and the leads of its team, as long as they see it."""
        if not self.is_shared:
            return self.owner_id == user.pk
        if user.is_superuser:
            return True
        role = Membership.objects.filter(team=self.team_id, user=user).values_list(
            "role", flat=True
        )
        return bool(role) and (self.owner_id == user.pk or role[0] == Role.LEAD)

    def query(self, zone: tzinfo) -> dict:
        """The list's parameters for somebody in ``zone``. A day in another zone is other hours, so
        it becomes the moments at which that day began or ended where the view was saved."""
        if str(zone) == self.zone:
            return dict(self.filters)
        return {
            name: self._in_moments(name, value) if isinstance(value, str) else value
            for name, value in self.filters.items()
        }

    def _in_moments(self, name: str, text: str) -> str:
        if not name.endswith(("_after", "_before")) or (day := _day(text)) is None:
            return text
        midnight = _midnight(day, self.zone)
        if name.endswith("_before"):
            midnight = _midnight(day + timedelta(days=1), self.zone) - timedelta(microseconds=1)
        return midnight.isoformat()

    # Verbs

    @transaction.atomic
    def change(self, by, version: int, **choices) -> "SavedView":
        """Change some of what ``save_view`` takes; with whom it is shared, its owner alone.

        Args:
            version: of the view that ``by`` had before them.

        Raises:
            ViewChanged: it has another version by now; nothing is changed.
            DoesNotExist: it is out of their sight by now.
            PermissionDenied: they may see it only.
            ValidationError: a choice that cannot be.
        """
        view = self._locked(by)
        if view.version != version:
            raise ViewChanged(view)
        if "team" in choices and choices["team"] != view.team:
            if view.owner_id != by.pk:
                raise PermissionDenied(_("Only its owner decides with whom it is shared."))
            view.team = choices["team"]
            view._refuse_team_of_others(by)
        for name in ("name", "filters", "zone", "columns"):
            if name in choices:
                setattr(view, name, choices[name])
        view.full_clean(exclude=["owner", "team"])
        view.version += 1
        view.save()
        return view

    @transaction.atomic
    def discard(self, by) -> None:
        """Delete it, for all who see it. Raises DoesNotExist and PermissionDenied as ``change``."""
        self._locked(by).delete()

    def _locked(self, by) -> "SavedView":
        visible = SavedView.objects.visible_to(by).select_for_update(of=["self"])
        view = visible.select_related("team").get(pk=self.pk)
        if not view.is_changeable_by(by):
            raise PermissionDenied(_("Only its owner and the leads of its team may change it."))
        return view

    def _refuse_team_of_others(self, by) -> None:
        if self.team and not self.team.is_workable_by(by):
            raise ValidationError(_("You may share views with teams whose tickets you may change."))


def _day(text: str) -> date | None:
    try:
        return parse_date(text)
    except ValueError:
        return None


def _midnight(day: date, zone: str) -> datetime:
    return datetime.combine(day, time.min, ZoneInfo(zone))
