"""Faults of a round, planted at its seams."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from django.db import DatabaseError
from django.test import override_settings

from tasks import dispatcher, queue
from tasks.queue import handing

UNREACHABLE = queue.QueueUnreachable("planted")
DOWN = "Redis is down"
UNREAD = "reading fails"
REFUSED = "the broker refuses"
UNANSWERED = "the broker takes it and the answer is lost"
UNSTAMPED = "it stops before it stamps"
UNDROPPED = "it stops before it drops what it promoted"
FAULTS = (DOWN, UNREAD, REFUSED, UNANSWERED, UNSTAMPED, UNDROPPED)
WITHOUT_STAMP = (DOWN, UNREAD, UNSTAMPED)


@contextmanager
def planted(fault: str):
    """Makes a round fail. Yields the set of tasks whose publishing did."""
    publish, touched = handing.publish, set()

    def failing(tasks, patience):
        if tasks and fault == UNANSWERED:
            publish(tasks, patience)
        touched.update(task.pk for task in tasks)
        if tasks:
            raise UNREACHABLE
        return publish(tasks, patience)

    with ExitStack() as stack:
        if fault == DOWN:
            nobody = "unix:///nonexistent/nobody.sock"
            stack.enter_context(override_settings(REDIS_URL=nobody))
        elif fault == UNREAD:
            stack.enter_context(patch.object(queue, "view_of", side_effect=UNREACHABLE))
        elif fault in (REFUSED, UNANSWERED):
            stack.enter_context(patch.object(handing, "publish", failing))
        elif fault == UNSTAMPED:
            cut = DatabaseError("planted")
            stack.enter_context(patch.object(dispatcher, "_stamp", side_effect=cut))
        elif fault == UNDROPPED:
            stack.enter_context(patch.object(queue, "drop_delayed", side_effect=UNREACHABLE))
        try:
            yield touched
        finally:
            queue.forgetting_rests.end()
