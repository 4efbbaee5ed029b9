"""The REMINDER handler: once per due date, to the people it concerns, if it still holds."""

from tasks.registry import SHORT, handles
from tickets.models import Ticket, User
from tickets.models.reminding import REMINDER


@handles(REMINDER, queue=SHORT, time_limit=60, batch=50)
def deliver_reminder(task, lease):
    """Nothing happens outside the effect: it only reads and writes the database."""

    def effect():
        # The ticket first, then ledger rows: a due date being moved is waited for and then seen.
        ticket = Ticket.objects.select_for_update().filter(pk=task.ticket_id).first()
        if ticket:
            # Not task.owner: that account may have been deleted since the claim.
            owner = User.objects.filter(pk=task.owner_id).first()
            ticket.remind(task.reminder_revision, owner)

    return effect
