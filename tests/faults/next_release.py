"""What the next release knows: loaded by its workers alone (``celery -I``), never by a test."""

from tasks.registry import handles
from tests.tasks.kinds import write_note


@handles("FROM_NEXT_RELEASE")
def from_next_release(task, lease):
    return lambda: write_note(task)
