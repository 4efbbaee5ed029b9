"""What a log line is about: the web request, and the job that runs now. Carried from a request
through the ledger into the log of the task that it enqueued.

Of our own and not django-guid's: that one takes only what ``uuid.UUID`` can read from a client,
however long. Proxies send ids of other forms, and a column has a limit.
"""

import re
import uuid
from collections.abc import Sequence
from contextlib import contextmanager
from contextvars import ContextVar

LIMIT = 64  # characters; BackgroundTask.request_id
# What is safe in a log line, a header and a column as it is.
_SAFE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:=+-]{{7,{LIMIT - 1}}}")

# Of the request that is answered now, or that enqueued the task that runs now; empty elsewhere.
request_id: ContextVar[str] = ContextVar("request_id", default="")
# Who asks; None: nobody is known.
user_id: ContextVar[int | None] = ContextVar("user_id", default=None)
# What a worker runs now: task and run, and once it is claimed attempt, execution and kind; of a
# message with several, their names.
job: ContextVar[dict] = ContextVar("job", default={})  # noqa: B039  never changed, only replaced


def accepted_or_new(offered: str) -> str:
    """The id that a client or proxy offers, if it is safe, or one made here."""
    return offered if _SAFE.fullmatch(offered) else uuid.uuid4().hex


# A message, from before its claim until Celery is done with it


def begin(jobs: Sequence[tuple[int, int]]) -> None:
    """Lines from here on are about these jobs (task id, run), also Celery's own."""
    if len(jobs) == 1:
        job.set(dict(zip(("task", "run"), jobs[0], strict=True)))
    else:
        job.set({"jobs": " ".join(f"{task}:{run}" for task, run in jobs)})
    request_id.set("")


def end() -> None:
    job.set({})
    request_id.set("")


@contextmanager
def of_jobs(jobs: Sequence[tuple[int, int]]):
    """Like ``begin``, where no message began."""
    if job.get():
        yield
        return
    begin(jobs)
    try:
        yield
    finally:
        end()


# A task that is claimed


def claimed(task) -> None:
    """The message's only job: which execution this is, and who asked for it."""
    job.set(_about(task))
    request_id.set(task.request_id)


@contextmanager
def of_task(task):
    """The lines of the block are about this task alone, and what it enqueues has its request."""
    about, asked = job.set(_about(task)), request_id.set(task.request_id)
    try:
        yield
    finally:
        job.reset(about)
        request_id.reset(asked)


def _about(task) -> dict:
    return {
        "task": task.pk,
        "run": task.run,
        "attempt": task.attempt,
        "execution": str(task.execution_id),
        "kind": task.kind,
    }
