"""The reminder of a due date: the one place that decides it, and its delivery."""

from tasks.clock import database_now
from tasks.models import BackgroundTask

from .notification import Notification
from .notification_kind import NotificationKind
from .ticket_event import REMINDER_RULE, EventKind, TicketEvent

REMINDER = "REMINDER"


class TicketReminding:
    """Capability of Ticket: reminding of its due date."""

    def reschedule_reminder(self, now, *, due_is_new: bool, fast_path_wanted: bool = True) -> None:
        """Invalidate what was scheduled, then schedule what holds now.

        The caller holds the row's lock and saves ``reminder_revision``. A due date just set and
        already past reminds at once; an old one that comes back with a reopening does not.
        """
        self.reminder_revision += 1
        self._waiting_reminders().cancel(reason="The due date or status of the ticket changed.")
        if not self.is_live or self.due_at is None or (self.due_at <= now and not due_is_new):
            return
        BackgroundTask.objects.enqueue(
            REMINDER,
            run_at=self.due_at,
            ticket=self,
            team=self.team_id,
            owner=self.creator_id,
            reminder_revision=self.reminder_revision,
            fast_path_wanted=fast_path_wanted,
        )

    def move_reminder(self) -> None:
        """The waiting reminder belongs to the ticket's new team."""
        self._waiting_reminders().update(team=self.team_id)

    def _waiting_reminders(self):
        return BackgroundTask.objects.waiting().filter(ticket=self.pk, kind=REMINDER)

    def remind(self, revision: int | None, owner=None) -> bool:
        """Tell ``owner`` and the assignee that the ticket is due. True if this call did it.

        The caller holds the row's lock. Quietly False when the due date this was meant for has been
        moved or cleared, the ticket is done, nobody may see it, or it was said before.
        """
        if revision != self.reminder_revision or not self.is_live or self.due_at is None:
            return False
        if self.events.filter(kind=EventKind.REMINDED, new_value=revision).exists():
            return False
        readers = self.team.readers().filter(pk__in={owner and owner.pk, self.assignee_id} - {None})
        people = sorted(readers, key=lambda person: person.pk)
        if not people:
            return False
        Notification.objects.notify(
            people,
            kind=NotificationKind.REMINDER,
            cause=f"reminder:{self.pk}:{revision}",
            ticket=self,
            text=self.subject,
        )
        TicketEvent.objects.create(
            ticket=self,
            **TicketEvent.by(None, REMINDER_RULE),
            kind=EventKind.REMINDED,
            new_value=revision,
            new_text=", ".join(person.display_name for person in people),
            version=self.version,
            at=database_now(),
        )
        return True
