"""The REMINDER handler: once per due date, to the people it concerns, if it still holds."""

from tasks.registry import SHORT, handles
from tickets.models import Ticket
from tickets.models.reminding import REMINDER


@handles(REMINDER, queue=SHORT, time_limit=60)
def deliver_reminder(task, lease):
    """Nothing happens outside the effect: it only reads and writes the database."""

    def effect():
        # The ticket first, then ledger rows: a due date being moved is waited for and then seen.
        ticket = Ticket.objects.select_for_update().filter(pk=task.ticket_id).first()
        if ticket:
            ticket.remind(task.reminder_revision, task.owner)

    return effect
