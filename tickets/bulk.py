"""The BULK handler: one change to many tickets, each in a transaction of its own."""

from django.core.exceptions import ValidationError
from django.utils import translation

from tasks.registry import SHORT, PermanentFailure, handles
from tasks.transactions import is_nobodys_failure
from tickets.models import BulkEdit, BulkTicket
from tickets.models.bulk_edit import BULK


# 1,000 tickets take seconds, which reminders can wait; behind exports a person would wait minutes.
@handles(BULK, queue=SHORT, time_limit=600, ladder=(5, 30))
def run_bulk_edit(task, lease):
    """Settle the tickets that are left. Each is changed together with the row that says so, so an
    execution after a killed one goes on where that ended and does none twice."""
    bulk_edit = BulkEdit.objects.select_related("by").filter(pk=task.pk).first()
    if bulk_edit is None:
        raise PermanentFailure("The bulk edit was deleted, with the account that asked for it.")
    with translation.override(bulk_edit.language):
        try:
            values = bulk_edit.values()
        except ValidationError as error:
            raise PermanentFailure(" ".join(error.messages)) from error
        _settle_all(bulk_edit, values, lease)


def _settle_all(bulk_edit, values, lease) -> None:
    left, total = bulk_edit.numbers_left(), bulk_edit.tickets.count()
    failure = None
    for done, number in enumerate(left, start=total - len(left)):
        lease.progress(done, total)  # and the fence: who was cancelled changes nothing more
        try:
            BulkTicket.objects.settle(bulk_edit, number, values)
        except Exception as error:  # one ticket's failure must not stop the others
            if is_nobodys_failure(error):
                raise
            failure = failure or error
    if failure:
        raise failure  # the next attempt finds those that are left
    lease.progress(total, total)
