"""Teams and who belongs to them, in which role."""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    VIEWER = "viewer", _("viewer")  # reads
    AGENT = "agent", _("agent")  # works tickets
    LEAD = "lead", _("lead")  # works tickets, as an agent does; names who answers for the team


WORKING_ROLES = [Role.AGENT, Role.LEAD]


class TeamQuerySet(models.QuerySet):
    def visible_to(self, user):
        """Teams whose tickets ``user`` may read: their own, or all for a superuser."""
        if not user.is_active:
            return self.none()
        return self if user.is_superuser else self.filter(memberships__user=user)

    def workable_by(self, user):
        """Teams whose tickets ``user`` may change: as agent or lead."""
        if not user.is_active:
            return self.none()
        if user.is_superuser:
            return self
        return self.filter(memberships__user=user, memberships__role__in=WORKING_ROLES)


class Team(models.Model):
    name = models.CharField(_("name"), max_length=100, unique=True)
    slug = models.SlugField(_("short name"), unique=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        through="Membership",
        related_name="+",
        verbose_name=_("members"),
    )
    created_at = models.DateTimeField(_("created"), db_default=Now(), editable=False)

    objects = TeamQuerySet.as_manager()

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        ordering = ["name"]

    def __str__(self):
        return self.name

    # Questions

    def is_visible_to(self, user) -> bool:
        return Team.objects.visible_to(user).filter(pk=self.pk).exists()

    def is_workable_by(self, user) -> bool:
        return Team.objects.workable_by(user).filter(pk=self.pk).exists()

    def readers(self):
        """The active people who may see its tickets."""
        members = self.memberships.filter(user=OuterRef("pk"))
        return _active_people().filter(Q(is_superuser=True) | Exists(members))

    def workers(self):
        """Its active agents and leads: whom a ticket can sensibly be assigned to."""
        members = self.memberships.filter(user=OuterRef("pk"), role__in=WORKING_ROLES)
        return _active_people().filter(Exists(members)).order_by("username")


def _active_people():
    return get_user_model().objects.filter(is_active=True)


class Membership(models.Model):
    team = models.ForeignKey(
        Team, models.CASCADE, related_name="memberships", verbose_name=_("team")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=10, choices=Role, default=Role.AGENT)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_person")
        ]

    def __str__(self):
        return f"{self.user} · {self.team} · {self.get_role_display()}"
