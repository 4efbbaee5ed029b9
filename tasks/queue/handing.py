"""The dispatcher's side: what the queue knows of tasks, and handing them over."""

import logging
import re
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings

from tasks import registry, scripts
from tasks.queue.connections import (
    DELAYED,
    PATIENCE_SECONDS,
    QueueUnreachable,
    conversation,
    is_of_wrong_type,
    record_key,
    watermark_key,
)
from tasks.queue.marking import set_delayed
from tasks.queue.publishing import publish
from tasks.records import View, microseconds, parse
from tasks.rest import Rest

logger = logging.getLogger(__name__)

_JOB = re.compile(rb"[0-9]{1,18}:[0-9]{1,9}")

forgetting_rests = Rest(seconds=5)  # ``forget`` after a failure


def view_of(tasks: Iterable, patience: float = PATIENCE_SECONDS) -> View:
    """Reads the records of ``tasks`` in one pipeline. Raises QueueUnreachable."""
    tasks = list(tasks)
    with conversation(patience) as client:
        pipe = client.pipeline(transaction=False)
        pipe.time()
        for queue in registry.QUEUES:
            pipe.llen(queue)
            pipe.get(watermark_key(queue))
        for task in tasks:
            pipe.hgetall(record_key(task.job_id))
            pipe.zscore(DELAYED, task.job_id)
        replies = iter(_readable(pipe.execute(raise_on_error=False)))
    seconds, micros = next(replies)
    view = View(now=seconds * 1_000_000 + micros)
    for queue in registry.QUEUES:
        view.lengths[queue] = next(replies)
        mark = next(replies) or b""
        view.watermarks[queue] = int(mark) if mark.isdigit() else 0
    for task in tasks:
        view.records[task.pk] = parse(next(replies), next(replies))
    return view


def _readable(replies: list) -> list:
    """None where a key of ours holds something of another type: one such key must not stop every
    round. Other errors are raised."""
    for index, reply in enumerate(replies):
        if is_of_wrong_type(reply):
            replies[index] = None
        elif isinstance(reply, Exception):
            raise reply
    return replies


def add(tasks: Iterable, patience: float = PATIENCE_SECONDS) -> int:
    """Hand ``tasks`` over: due ones to Celery's lists, the others to the delayed set.

    Publishes first and then records what the broker accepted, so a crash in between costs a
    duplicate message and never a loss. Raises QueueUnreachable; then nothing was recorded.
    """
    tasks = list(tasks)
    published = publish([task for task in tasks if task.is_due], patience)
    with conversation(patience) as client:
        pipe = client.pipeline(transaction=False)
        for message, at, together in published:
            jobs = [task.job_id for task in together]
            attempts = [task.attempt + 1 for task in together]
            scripts.RECORD_PUBLISHED(
                client=pipe,
                keys=[DELAYED, *map(record_key, jobs)],
                args=[message, at, settings.TEAMDESK_RECORD_SECONDS, *attempts, *jobs],
            )
        for task in tasks:
            if not task.is_due:
                set_delayed(pipe, task)
        pipe.execute()
    return len(tasks)


def keep(tasks: Iterable, patience: float = PATIENCE_SECONDS) -> None:
    """Refresh the records of jobs that still wait, so that a day without workers breeds nothing."""
    tasks = list(tasks)
    if not tasks:
        return
    with conversation(patience) as client:
        pipe = client.pipeline(transaction=False)
        for task in tasks:
            pipe.expire(record_key(task.job_id), settings.TEAMDESK_RECORD_SECONDS, gt=True)
        pipe.execute()


def due_jobs(now: datetime, limit: int) -> list[tuple[str, int]]:
    """Delayed jobs whose time has come by PostgreSQL's ``now``: (job id, score), oldest first.

    Raises QueueUnreachable.
    """
    with conversation() as client:
        due = client.zrangebyscore(
            DELAYED, "-inf", microseconds(now), start=0, num=limit, withscores=True
        )
        strange = [job for job, _ in due if not _JOB.fullmatch(job)]
        if strange:  # not ours; it must not keep others from being promoted
            logger.warning("Removed from the delayed jobs: %r", strange)
            client.zrem(DELAYED, *strange)
    return [(job.decode(), int(score)) for job, score in due if job not in strange]


def drop_delayed(jobs: Iterable[tuple[str, int]]) -> None:
    """Remove jobs from the delayed set, each only while its score is still the one given."""
    jobs = list(jobs)
    if not jobs:
        return
    with conversation() as client:
        pipe = client.pipeline(transaction=False)
        for job, score in jobs:
            scripts.DROP_DELAYED(client=pipe, keys=[DELAYED], args=[job, score])
        pipe.execute()


def forget(jobs: Iterable[str]) -> None:
    """Drop records and delayed entries of jobs that ended. Best effort: nothing depends on it.

    Rests after a failure: who cancels a thousand tasks waits for a silent Redis once.
    """
    jobs = list(jobs)
    if forgetting_rests.is_on:
        return
    try:
        with conversation(0.2) as client:
            pipe = client.pipeline(transaction=False)
            pipe.zrem(DELAYED, *jobs)
            pipe.delete(*(record_key(job) for job in jobs))
            pipe.execute()
    except QueueUnreachable as error:
        forgetting_rests.begin()
        logger.info("Records of %d ended jobs were left to expire: %s", len(jobs), error)


def lengths(patience: float = 1.0) -> dict[str, int]:
    """Messages in the queues, and jobs in the delayed set. Raises QueueUnreachable."""
    with conversation(patience) as client:
        pipe = client.pipeline(transaction=False)
        for queue in registry.QUEUES:
            pipe.llen(queue)
        pipe.zcard(DELAYED)
        *due, delayed = pipe.execute()
    return dict(zip(registry.QUEUES, due, strict=True)) | {"delayed": delayed}
