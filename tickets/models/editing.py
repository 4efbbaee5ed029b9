"""Changing a ticket: the one verb every change goes through, and the short ones built on it."""

from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tasks.clock import database_now

from .editable import EDITABLE, clean_changes
from .notification import Notification
from .notification_kind import NotificationKind
from .ticket_event import EventKind, TicketEvent
from .ticket_status import LIVE_STATUSES, TicketStatus

NOT_IN_NEW_TEAM = gettext_noop("not in the new team")


@dataclass(frozen=True)
class Conflict:
    """A field that I and another person changed to different values since I loaded the ticket.

    ``base`` is the value that we both changed, as JSON.
    """

    field: str
    mine: Any
    theirs: Any
    mine_text: str = ""
    theirs_text: str = ""
    base: Any = None


@dataclass(frozen=True)
class Edit:
    """What an edit did: new values by field, and what it left alone because both had changed it."""

    saved: dict[str, Any] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)


class TicketEditing:
    """Capability of Ticket: being changed."""

    @transaction.atomic
    def edit(self, *, by, changes: dict, version: int | None = None, reason: str = "") -> Edit:
        """Change fields, with history, derived times, reminder and notifications.

        Compared with the stored row, not with this instance, which afterwards equals that row.

        Args:
            by: the person; None for the system, and then ``reason`` names the rule.
            changes: new values by field name, see ``EDITABLE``. Unchanged values are no changes.
            version: the version the person looked at. If others have changed the ticket since, a
                field that both changed to different values is a conflict and not saved; all
                others are.

        Raises:
            PermissionDenied: the person may not work tickets of this team, or of the new one.
            ValidationError: by field; nothing was changed.
        """
        ticket = self._locked()
        ticket._require_right(by, reason)
        wanted, conflicts = ticket._merge(clean_changes(changes), version)
        reasons = dict.fromkeys(wanted, reason) | ticket._complete_move(wanted, by)
        ticket._require_able_assignee(wanted)
        saved = ticket._apply(wanted, by, reasons)
        self._become(ticket)
        return Edit(saved, conflicts)

    # Short verbs

    def assign(self, to, *, by, reason: str = "") -> bool:
        """To a person, or to nobody (None). True if this call changed it."""
        return self._changed("assignee", to, by, reason)

    def set_status(self, status: str, *, by, reason: str = "") -> bool:
        return self._changed("status", status, by, reason)

    def resolve(self, *, by, reason: str = "") -> bool:
        return self.set_status(TicketStatus.RESOLVED, by=by, reason=reason)

    def close(self, *, by, reason: str = "") -> bool:
        return self.set_status(TicketStatus.CLOSED, by=by, reason=reason)

    def reopen(self, *, by, reason: str = "") -> bool:
        """Resolved or closed → open; a live ticket stays as it is."""
        with transaction.atomic():
            if self._locked().is_live:
                return False
            return self.set_status(TicketStatus.OPEN, by=by, reason=reason)

    def set_priority(self, priority: str, *, by, reason: str = "") -> bool:
        return self._changed("priority", priority, by, reason)

    def set_due(self, at, *, by, reason: str = "") -> bool:
        """Set, move or clear (None) the due date."""
        return self._changed("due_at", at, by, reason)

    def set_tags(self, tags, *, by, reason: str = "") -> bool:
        return self._changed("tags", tags, by, reason)

    def _changed(self, name, value, by, reason) -> bool:
        return name in self.edit(by=by, changes={name: value}, reason=reason).saved

    # The steps of an edit

    def _locked(self):
        """The stored row, locked. Every verb locks it first and ledger rows after it."""
        return type(self).objects.select_for_update().get(pk=self.pk)

    def _become(self, other) -> None:
        for each in self._meta.concrete_fields:
            setattr(self, each.attname, getattr(other, each.attname))

    def _require_right(self, by, reason: str) -> None:
        if by is None:
            if not reason:
                raise ValueError("The system acts with a reason.")
        elif not self.team.is_workable_by(by):
            raise PermissionDenied(_("You may not change tickets of this team."))

    def _merge(self, wanted: dict, version) -> tuple[dict, list[Conflict]]:
        """What remains to be changed, and the conflicts. The values of ``version`` are found in
        history: the old value of each field's first change after it."""
        wanted = {name: value for name, value in wanted.items() if self._differs(name, value)}
        if version is None:
            return wanted, []
        base = self._values_before_changes_since(self._known_version(version), wanted)
        conflicts = []
        for name in [name for name in wanted if name in base]:
            editable, mine, theirs = EDITABLE[name], wanted[name], getattr(self, name)
            if base[name] == editable.to_json(theirs):
                continue  # changed and changed back: as if only I had changed it
            del wanted[name]
            if base[name] != editable.to_json(mine):
                texts = editable.to_text(mine), editable.to_text(theirs)
                conflicts.append(Conflict(name, mine, theirs, *texts, base[name]))
        return wanted, conflicts

    def _differs(self, name, value) -> bool:
        to_json = EDITABLE[name].to_json
        return to_json(value) != to_json(getattr(self, name))

    def _known_version(self, version) -> int:
        try:
            number = int(str(version))
        except ValueError:
            number = 0
        if not 1 <= number <= self.version:
            raise ValidationError(
                {"version": [_("This version of the ticket does not exist; load the page again.")]}
            )
        return number

    def _values_before_changes_since(self, version: int, names) -> dict[str, Any]:
        if version == self.version:
            return {}
        events = self.events.filter(version__gt=version, kind=EventKind.CHANGED, field__in=names)
        # Latest first, so the earliest remains.
        return dict(events.order_by("-version", "-id").values_list("field", "old_value"))

    def _complete_move(self, wanted: dict, by) -> dict[str, str]:
        """A move to another team needs rights in both, and leaves behind an assignee who is not in
        the new one. Returns the reason of what this adds to ``wanted``."""
        team = wanted.get("team")
        if team is None:
            return {}
        if by is not None and not team.is_workable_by(by):
            raise PermissionDenied(_("You may not move tickets to this team."))
        if "assignee" in wanted or self.assignee is None or team.is_workable_by(self.assignee):
            return {}
        wanted["assignee"] = None
        return {"assignee": NOT_IN_NEW_TEAM}

    def _require_able_assignee(self, wanted: dict) -> None:
        assignee, team = wanted.get("assignee"), wanted.get("team") or self.team
        if assignee and not team.is_workable_by(assignee):
            text = _("%(person)s cannot work tickets of the team %(team)s.")
            values = {"person": assignee.display_name, "team": team.name}
            raise ValidationError({"assignee": [text % values]})

    def _apply(self, changed: dict, by, reasons: dict[str, str]) -> dict:
        if not changed:
            return {}
        now, was_live = database_now(), self.is_live
        self.version += 1
        self.updated_at = now
        events = [
            self._event_of(name, new, by, reasons[name], now) for name, new in changed.items()
        ]
        for name, new in changed.items():
            setattr(self, name, new)
        self.derive_times(now)
        if "due_at" in changed or was_live != self.is_live:
            self.reschedule_reminder(now, due_is_new="due_at" in changed)
        elif "team" in changed:
            self.move_reminder()
        self.save()
        TicketEvent.objects.bulk_create(events)
        if changed.get("assignee") and changed["assignee"] != by:
            self.tell_assignee()
        return changed

    def _event_of(self, name, new, by, reason, now) -> TicketEvent:
        editable, old = EDITABLE[name], getattr(self, name)
        return TicketEvent(
            ticket=self,
            **TicketEvent.by(by, reason),
            kind=EventKind.CHANGED,
            field=name,
            old_value=editable.to_json(old),
            new_value=editable.to_json(new),
            old_text=editable.to_text(old),
            new_text=editable.to_text(new),
            version=self.version,
            at=now,
        )

    def derive_times(self, now) -> None:
        """When it was resolved and closed follow from the status; a reopened ticket is neither.
        Closing without resolving resolves too: reports then count every finished ticket."""
        if self.status in LIVE_STATUSES:
            self.resolved_at = self.closed_at = None
        elif self.status == TicketStatus.RESOLVED:
            self.resolved_at, self.closed_at = self.resolved_at or now, None
        else:
            self.resolved_at, self.closed_at = self.resolved_at or now, self.closed_at or now

    def tell_assignee(self) -> None:
        Notification.objects.notify(
            [self.assignee],
            kind=NotificationKind.ASSIGNED,
            cause=f"assigned:{self.pk}:{self.version}",
            ticket=self,
            text=self.subject,
        )
