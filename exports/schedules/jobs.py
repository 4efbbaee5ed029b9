"""The SCHEDULED_EXPORT handler: one export for each time that it is due, if that still holds."""

from exports.models import ScheduledExport
from exports.models.running import SCHEDULED_EXPORT
from tasks.registry import SHORT, handles


@handles(SCHEDULED_EXPORT, queue=SHORT, time_limit=60)
def run_scheduled_export(task, lease):
    """Nothing happens outside the effect: the export, the next time's task and COMPLETED are one
    transaction."""

    def effect():
        # A change under way is waited for and then seen; what was deleted is gone.
        schedules = ScheduledExport.objects.select_for_update()
        scheduled = schedules.filter(pk=task.payload.get("schedule")).first()
        if scheduled:
            scheduled.run(task.payload.get("revision"))

    return effect
