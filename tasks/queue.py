"""What Redis knows. The only module that talks to Redis or publishes to Celery.

Per job (``"{task.id}:{task.run}"``) one hash, the record: what the queue last did with it. One
sorted set holds the jobs that are not due, scored by ``run_at``. Celery's lists carry only due
work: a message with ``eta`` would sit in a worker's memory and be delivered again and again.

The ledger decides, always. A record only saves the dispatcher from publishing what is already on
its way; every doubt is resolved by publishing once more, since the claim refuses doubles.
"""

import logging
import re
import uuid
from collections.abc import Iterable
from datetime import datetime

import redis
from celery import current_app
from django.conf import settings
from kombu.exceptions import KombuError
from kombu.exceptions import OperationalError as BrokerError
from redis.backoff import NoBackoff
from redis.retry import Retry

from tasks import registry, scripts
from tasks.records import LOST_AFTER_SECONDS, State, View, microseconds, parse
from tasks.rest import Rest

logger = logging.getLogger(__name__)

EXECUTE = "tasks.execute"  # the one Celery task; tasks/worker.py
HARD_LIMIT_MARGIN_SECONDS = 30  # Celery ends a hung process this long after its kind's limit
TOMBSTONE_SECONDS = 60  # outlives a publisher that records a job which already ended

_PREFIX = "teamdesk:"
_DELAYED = f"{_PREFIX}delayed"
_JOB = re.compile(rb"[0-9]{1,18}:[0-9]{1,9}")

# What a stalled or absent Redis may cost: a round stops at the first error, a worker goes on
# without its record, the fast path gives up within its 250 ms.
_PATIENCE_SECONDS = 2.0


class QueueUnreachable(Exception):
    """Redis did not answer. What was being handed over is neither recorded nor stamped."""


forgetting_rests = Rest(seconds=5)  # ``forget`` after a failure


# --- The dispatcher's side ------------------------------------------------------------------------


def view_of(tasks: Iterable, patience: float = _PATIENCE_SECONDS) -> View:
    """Reads the records of ``tasks`` in one pipeline. Raises QueueUnreachable."""
    tasks = list(tasks)
    with _redis(patience) as client:
        pipe = client.pipeline(transaction=False)
        pipe.time()
        for queue in registry.QUEUES:
            pipe.llen(queue)
            pipe.get(_watermark(queue))
        for task in tasks:
            pipe.hgetall(_record(task.job_id))
            pipe.zscore(_DELAYED, task.job_id)
        replies = iter(pipe.execute())
    seconds, micros = next(replies)
    view = View(now=seconds * 1_000_000 + micros)
    for queue in registry.QUEUES:
        view.lengths[queue] = next(replies)
        mark = next(replies) or b""
        view.watermarks[queue] = int(mark) if mark.isdigit() else 0
    for task in tasks:
        view.records[task.pk] = parse(next(replies), next(replies))
    return view


def add(tasks: Iterable, patience: float = _PATIENCE_SECONDS) -> int:
    """Hand ``tasks`` over: due ones to Celery's lists, the others to the delayed set.

    Publishes first and then records what the broker accepted, so a crash in between costs a
    duplicate message and never a loss. Raises QueueUnreachable; then nothing was recorded.
    """
    tasks = list(tasks)
    due = [task for task in tasks if task.is_due]
    later = [task for task in tasks if not task.is_due]
    published = _publish(due, patience)
    with _redis(patience) as client:
        pipe = client.pipeline(transaction=False)
        for task in due:
            message, at = published[task.pk]
            scripts.RECORD_PUBLISHED(
                client=pipe,
                keys=[_record(task.job_id), _DELAYED],
                args=[message, task.attempt + 1, at, settings.TEAMDESK_RECORD_SECONDS, task.job_id],
            )
        for task in later:
            _set_delayed(pipe, task)
        pipe.execute()
    return len(tasks)


def keep(tasks: Iterable, patience: float = _PATIENCE_SECONDS) -> None:
    """Refresh the records of jobs that still wait, so that a day without workers breeds nothing."""
    with _redis(patience) as client:
        pipe = client.pipeline(transaction=False)
        for task in tasks:
            pipe.expire(_record(task.job_id), settings.TEAMDESK_RECORD_SECONDS, gt=True)
        pipe.execute()


def due_jobs(now: datetime, limit: int) -> list[tuple[str, int]]:
    """Delayed jobs whose time has come by PostgreSQL's ``now``: (job id, score), oldest first.

    Raises QueueUnreachable.
    """
    with _redis() as client:
        due = client.zrangebyscore(
            _DELAYED, "-inf", microseconds(now), start=0, num=limit, withscores=True
        )
        strange = [job for job, _ in due if not _JOB.fullmatch(job)]
        if strange:  # not ours; it must not keep others from being promoted
            logger.warning("Removed from the delayed jobs: %r", strange)
            client.zrem(_DELAYED, *strange)
    return [(job.decode(), int(score)) for job, score in due if job not in strange]


def drop_delayed(jobs: Iterable[tuple[str, int]]) -> None:
    """Remove jobs from the delayed set, each only while its score is still the one given."""
    jobs = list(jobs)
    if not jobs:
        return
    with _redis() as client:
        pipe = client.pipeline(transaction=False)
        for job, score in jobs:
            scripts.DROP_DELAYED(client=pipe, keys=[_DELAYED], args=[job, score])
        pipe.execute()


def forget(jobs: Iterable[str]) -> None:
    """Drop records and delayed entries of jobs that ended. Best effort: nothing depends on it.

    Rests after a failure: who cancels a thousand tasks waits for a silent Redis once.
    """
    jobs = list(jobs)
    if forgetting_rests.is_on:
        return
    try:
        with _redis(0.2) as client:
            pipe = client.pipeline(transaction=False)
            pipe.zrem(_DELAYED, *jobs)
            pipe.delete(*(_record(job) for job in jobs))
            pipe.execute()
    except QueueUnreachable as error:
        forgetting_rests.begin()
        logger.info("Records of %d ended jobs were left to expire: %s", len(jobs), error)


def lengths(patience: float = 1.0) -> dict[str, int]:
    """Lengths of the queues and of the delayed set. Raises QueueUnreachable."""
    with _redis(patience) as client:
        pipe = client.pipeline(transaction=False)
        for queue in registry.QUEUES:
            pipe.llen(queue)
        pipe.zcard(_DELAYED)
        *due, delayed = pipe.execute()
    return dict(zip(registry.QUEUES, due, strict=True)) | {"delayed": delayed}


# --- The worker's side: compare-and-set on the message, never backwards, never fatal --------------


def mark_started(job: str, message: str, queue: str, published_at: int) -> None:
    """A message was taken off its list: raises the queue's watermark."""
    _mark(job, message, State.ACTIVE, queue=queue, published_at=published_at)


def mark_claimed(job: str, message: str, attempt: int) -> None:
    _mark(job, message, State.ACTIVE, attempt=attempt)


def mark_ended(job: str, message: str) -> None:
    """The queue is done with this message. The record goes within a minute, not at once, so that a
    publisher which records it late finds that it already ended."""
    _mark(job, message, State.COMPLETED, ttl=TOMBSTONE_SECONDS)


def mark_failed(job: str, message: str, error: str) -> None:
    """The process died or Celery gave up. A fact in the record; the ledger is not touched here."""
    _mark(job, message, State.FAILED, error=error[:500])


def mark_delayed(task) -> None:
    """A claim was refused because the task is not yet due: wait in the delayed set again."""
    try:
        with _redis() as client:
            pipe = client.pipeline(transaction=False)
            _set_delayed(pipe, task)
            pipe.execute()
    except QueueUnreachable as error:
        logger.info("%s was not put back among the delayed jobs: %s", task, error)


def _mark(
    job, message, state: State, *, attempt="", queue="", published_at=0, ttl=None, error=""
) -> None:
    """Best effort: a worker goes on without its record."""
    ahead = LOST_AFTER_SECONDS * 1_000_000
    ttl = ttl or settings.TEAMDESK_RECORD_SECONDS
    try:
        with _redis(1.0) as client:
            scripts.MARK(
                client=client,
                keys=[_record(job), _watermark(queue) if queue else ""],
                args=[message, state, attempt, published_at, ttl, error, ahead],
            )
    except QueueUnreachable as unreachable:
        logger.warning("A queue record was not written: %s", unreachable)


# --- Redis ----------------------------------------------------------------------------------------


def _record(job: str) -> str:
    return f"{_PREFIX}job:{job}"


def _watermark(queue: str) -> str:
    return f"{_PREFIX}watermark:{queue}"


def _set_delayed(pipe, task) -> None:
    at = microseconds(task.run_at)
    key = _record(task.job_id)
    pipe.delete(key)
    pipe.hset(
        key,
        mapping={
            "state": State.DELAYED,
            "attempt": task.attempt + 1,
            "message": "",
            "at": at,
            "error": "",
        },
    )
    pipe.expireat(key, at // 1_000_000 + settings.TEAMDESK_RECORD_SECONDS)
    pipe.zadd(_DELAYED, {task.job_id: at})


class _redis:
    """A client for one conversation; its errors become QueueUnreachable.

    A fresh connection costs under a millisecond and never carries the staleness of a Redis that
    was restarted meanwhile.
    """

    def __init__(self, patience: float = _PATIENCE_SECONDS):
        self.client = redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=patience,
            socket_connect_timeout=patience,
            retry=Retry(NoBackoff(), 0),
        )

    def __enter__(self) -> redis.Redis:
        return self.client

    def __exit__(self, kind, error, trace):
        self.client.close()
        if isinstance(error, redis.ConnectionError | redis.TimeoutError | OSError):
            raise QueueUnreachable(f"Redis did not answer: {error}") from error
        if isinstance(error, redis.RedisError):
            raise QueueUnreachable(f"Redis refused: {error}") from error


def _publish(tasks: list, patience: float) -> dict[int, tuple[str, int]]:
    """Publish one message for each due task: {task id: (message uuid, published at)}.

    One broker transaction for the batch; one of uncertain fate raises QueueUnreachable.
    """
    if not tasks:
        return {}
    published = {}
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS | {
        "socket_timeout": patience,
        "socket_connect_timeout": patience,
    }
    try:
        with (
            current_app.connection_for_write(transport_options=options) as connection,
            current_app.amqp.Producer(connection) as producer,
            producer.batch(max_size=len(tasks) * 2),
        ):
            at = _redis_time(connection)
            for task in tasks:
                kind = registry.kind(task.kind)
                message = str(uuid.uuid4())
                current_app.send_task(
                    EXECUTE,
                    kwargs={"task_id": task.pk, "run": task.run, "published_at": at},
                    task_id=message,
                    queue=kind.queue,
                    time_limit=kind.time_limit + HARD_LIMIT_MARGIN_SECONDS,
                    producer=producer,
                    retry=False,
                )
                published[task.pk] = (message, at)
    except (BrokerError, KombuError, redis.RedisError, OSError) as error:
        raise QueueUnreachable(f"Celery's broker did not accept the work: {error}") from error
    return published


def _redis_time(connection) -> int:
    seconds, micros = connection.default_channel.client.time()
    return seconds * 1_000_000 + micros
