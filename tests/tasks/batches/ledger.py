"""Tasks of kind QUICK_NOTE, and what the ledger says of them."""

from tasks.models import BackgroundTask, TaskStatus

COMPLETED, WAITING, FAILED = TaskStatus.COMPLETED, TaskStatus.WAITING, TaskStatus.FAILED


def enqueue(does=None, **more):
    return BackgroundTask.objects.enqueue("QUICK_NOTE", payload={"does": does}, **more)


def jobs(tasks):
    return [(task.pk, task.run) for task in tasks]


def reread(task):
    return BackgroundTask.objects.get(pk=task.pk)


def outcomes(task):
    return list(task.attempts.values_list("outcome", flat=True))
