"""The ledger's own kinds: canaries that show that workers live, and the daily pruning."""

from datetime import timedelta

from django.conf import settings

from tasks.clock import database_now
from tasks.models import BackgroundTask
from tasks.registry import CANARIES, FREE_RETRIES, LONG, SHORT, RetryLater, handles

CANARY_EVERY = timedelta(minutes=1)
CANARIES_KEPT = timedelta(days=1)
TURN_SECONDS = 20  # then a pruning lets the exports behind it go first


@handles(CANARIES[SHORT], queue=SHORT, time_limit=30, ladder=(10, 10), every=CANARY_EVERY)
@handles(CANARIES[LONG], queue=LONG, time_limit=30, ladder=(10, 10), every=CANARY_EVERY)
def sing(task, lease):
    """That it completes is all: /readyz looks for the last one that did."""


@handles("PRUNE", queue=LONG, time_limit=600, every=timedelta(days=1))
def prune(task, lease):
    """Forget canaries after a day and, by setting, other tasks after theirs. Committed as it goes;
    running it twice only finds less to do."""
    pruned = 0

    def report(count):
        lease.progress(pruned + count)

    lease.check()
    ledger = BackgroundTask.objects
    canaries = ledger.filter(kind__in=CANARIES.values())
    pruned += canaries.prune(CANARIES_KEPT, seconds=TURN_SECONDS, progress=report)
    days = settings.TEAMDESK_KEEP_DAYS
    if days:
        pruned += ledger.prune(timedelta(days=days), seconds=TURN_SECONDS, progress=report)
        is_more = ledger.prunable(timedelta(days=days)).exists()
        # What a hundred turns leave is tomorrow's. Rows that refuse to go are no reason to go on.
        if pruned and is_more and task.attempt < FREE_RETRIES:
            raise RetryLater(at=database_now(), reason=f"{pruned} removed; more is left.")
