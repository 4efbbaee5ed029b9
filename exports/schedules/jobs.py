"""The SCHEDULED_EXPORT handler: one export for each time that it is due, if that still holds; and
the chore that looks for schedules which nothing would run any more."""

from contextlib import suppress
from datetime import timedelta

from exports.models import LimitReached, ScheduledExport
from exports.models.running import SCHEDULED_EXPORT
from tasks.clock import database_now
from tasks.registry import SHORT, RetryLater, handles

# A limit of what is under way or stored may be gone soon: several at eight o'clock wait for each
# other, for an hour at most.
WAIT = timedelta(minutes=2)
MOST_ATTEMPTS = 30


@handles(SCHEDULED_EXPORT, queue=SHORT, time_limit=60)
def run_scheduled_export(task, lease):
    """Nothing happens outside the effect: the export, the next time's task and COMPLETED are one
    transaction."""

    def effect():
        # A change under way is waited for and then seen; what was deleted is gone.
        schedules = ScheduledExport.objects.select_for_update()
        scheduled = schedules.filter(pk=task.payload.get("schedule")).first()
        if scheduled is None:
            return
        try:
            may_wait = task.attempt < MOST_ATTEMPTS
            scheduled.run(task.payload.get("revision"), may_wait=may_wait)
        except LimitReached as limit:
            raise RetryLater(database_now() + WAIT, str(limit)) from limit

    return effect


@handles("STRANDED_SCHEDULES", queue=SHORT, time_limit=60, every=timedelta(minutes=10))
def pause_stranded(task, lease):
    """Each in a transaction of its own; doing it twice finds nothing to do."""
    for scheduled in ScheduledExport.objects.stranded():
        lease.check()
        with suppress(ScheduledExport.DoesNotExist):
            scheduled.pause_if_stranded()
