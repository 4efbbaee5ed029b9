"""What Redis knows. The only package that talks to Redis or publishes to Celery.

Per job (``"{task.id}:{task.run}"``) one hash, the record: what the queue last did with it. One
sorted set holds the jobs that are not due, scored by ``run_at``. Celery's lists carry only due
work: a message with ``eta`` would sit in a worker's memory and be delivered again and again.

The ledger decides, always. A record only saves the dispatcher from publishing what is already on
its way; every doubt is resolved by publishing once more, since the claim refuses doubles.
"""

from tasks.queue.connections import QueueUnreachable
from tasks.queue.handing import (
    add,
    drop_delayed,
    due_jobs,
    forget,
    forgetting_rests,
    keep,
    lengths,
    view_of,
)
from tasks.queue.marking import (
    mark_claimed,
    mark_delayed,
    mark_ended,
    mark_failed,
    mark_started,
)
from tasks.queue.publishing import EXECUTE, jobs_of

__all__ = [
    "EXECUTE",
    "QueueUnreachable",
    "add",
    "drop_delayed",
    "due_jobs",
    "forget",
    "forgetting_rests",
    "jobs_of",
    "keep",
    "lengths",
    "mark_claimed",
    "mark_delayed",
    "mark_ended",
    "mark_failed",
    "mark_started",
    "view_of",
]
