"""Kinds for the tests of metrics and logs, also loaded by their real workers."""

import logging

from tasks.models import BackgroundTask
from tasks.registry import PermanentFailure, handles


@handles("COUNTED")
def counted(task, lease):
    """Nothing: that it ran is all. With ``payload["hopeless"]`` it fails for good."""
    if task.payload.get("hopeless"):
        raise PermanentFailure("The address does not exist.")


@handles("TALKS")
def talks(task, lease):
    """Logs, as a library that knows nothing of tasks would."""
    logger = logging.getLogger("some.library")
    logger.warning("before the work")
    return lambda: logger.warning("after the work")


@handles("TALKS_IN_BATCHES", batch=10, ladder=(60, 300))
def talks_in_batches(task, lease):
    return talks(task, lease)


@handles("PARENT")
def parent(task, lease):
    return lambda: BackgroundTask.objects.enqueue("PARENT", dedup_key=f"child of {task.pk}")


@handles("PARENT_IN_BATCHES", batch=10, ladder=(60, 300))
def parent_in_batches(task, lease):
    return parent(task, lease)
