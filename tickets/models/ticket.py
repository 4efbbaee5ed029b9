"""The ticket: its fields and questions. Its verbs are mixed in by capability."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now, Upper
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from .bulk_changing import TicketBulkChanging
from .discussing import TicketDiscussing
from .editing import TicketEditing
from .importing import TicketImporting
from .opening import TicketOpening
from .reminding import TicketReminding
from .searching import searched_text
from .team import Team
from .ticket_status import LIVE_STATUSES, TicketPriority, TicketStatus


class TicketQuerySet(TicketOpening, TicketImporting, models.QuerySet):
    # Selections

    def visible_to(self, user):
        """The only door to tickets: those of teams the person may read."""
        return self.filter(team__in=Team.objects.visible_to(user))

    def workable_by(self, user):
        """Those the person may change, as agent or lead of their team."""
        return self.filter(team__in=Team.objects.workable_by(user))

    def live(self):
        return self.filter(status__in=LIVE_STATUSES)

    def overdue(self):
        return self.live().filter(due_at__lt=Now())


class Ticket(TicketEditing, TicketBulkChanging, TicketDiscussing, TicketReminding, models.Model):
    team = models.ForeignKey(Team, models.PROTECT, related_name="tickets", verbose_name=_("team"))
    subject = models.CharField(_("subject"), max_length=200)
    description = models.TextField(_("description"), blank=True, default="")
    status = models.CharField(
        _("status"), max_length=10, choices=TicketStatus, default=TicketStatus.OPEN
    )
    priority = models.CharField(
        _("priority"), max_length=10, choices=TicketPriority, default=TicketPriority.NORMAL
    )
    creator = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("creator"),
    )
    requester_name = models.CharField(_("requester"), max_length=200, blank=True, default="")
    requester_email = models.EmailField(_("requester's e-mail"), blank=True, default="")
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("assignee"),
    )
    tags = ArrayField(
        models.CharField(max_length=50), verbose_name=_("tags"), blank=True, default=list
    )
    due_at = models.DateTimeField(_("due"), null=True, blank=True)
    reminder_revision = models.PositiveIntegerField(default=0, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)
    external_id = models.CharField(
        _("external id"), max_length=100, null=True, blank=True, editable=False
    )
    created_at = models.DateTimeField(_("created"), db_default=Now())
    updated_at = models.DateTimeField(_("updated"), db_default=Now())
    first_responded_at = models.DateTimeField(_("first response"), null=True, blank=True)
    resolved_at = models.DateTimeField(pgettext_lazy("time", "resolved"), null=True, blank=True)
    closed_at = models.DateTimeField(pgettext_lazy("time", "closed"), null=True, blank=True)

    objects = TicketQuerySet.as_manager()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        constraints = [
            models.UniqueConstraint(
                fields=["team", "external_id"], name="one_ticket_per_external_id_and_team"
            ),
            models.CheckConstraint(
                condition=Q(status__in=TicketStatus.values), name="ticket_status_is_known"
            ),
            models.CheckConstraint(
                condition=Q(priority__in=TicketPriority.values), name="ticket_priority_is_known"
            ),
        ]
        indexes = [
            # Readers: the ticket list in its default order, within the teams one may see.
            models.Index(fields=["team", "-updated_at", "-id"], name="ticket_list_of_team"),
            models.Index(fields=["-updated_at", "-id"], name="ticket_list"),
            # Reader: the list filtered by status.
            models.Index(fields=["team", "status"], name="ticket_status_of_team"),
            # Readers: overdue and due filters and counts.
            models.Index(
                fields=["due_at"], condition=Q(status__in=LIVE_STATUSES), name="ticket_live_due"
            ),
            # Readers: the dashboard of who sees all teams, and filters by these times.
            models.Index(fields=["created_at"], name="ticket_created"),
            models.Index(
                fields=["first_responded_at"],
                condition=Q(first_responded_at__isnull=False),
                name="ticket_first_response",
            ),
            models.Index(
                fields=["resolved_at"],
                condition=Q(resolved_at__isnull=False),
                name="ticket_resolved",
            ),
            # Reader: "mine".
            models.Index(fields=["assignee", "status"], name="ticket_assignee"),
            # Reader: the tag filter.
            GinIndex(fields=["tags"], name="ticket_tags"),
            # Reader: the text search, which looks for words anywhere.
            GinIndex(OpClass(Upper(searched_text()), "gin_trgm_ops"), name="ticket_search"),
        ]

    def __str__(self):
        return f"#{self.pk} {self.subject}"

    # Questions

    @property
    def is_live(self) -> bool:
        return self.status in LIVE_STATUSES
