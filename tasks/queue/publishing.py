"""Messages for Celery's workers: what they carry, and how they are published."""

import os
import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import redis
from celery import current_app
from django.conf import settings
from kombu.exceptions import KombuError
from kombu.exceptions import OperationalError as BrokerError

from tasks import registry
from tasks.queue.connections import QueueUnreachable

EXECUTE = "tasks.execute"  # the one Celery task; tasks/worker.py
HARD_LIMIT_MARGIN_SECONDS = 30  # Celery ends a hung process this long after its kind's limit

_KEPT = 4  # idle connections to the broker, per process and patience
_kept: dict[tuple, deque] = defaultdict(lambda: deque(maxlen=_KEPT))


def jobs_of(message: dict) -> list[tuple[int, int]]:
    """The jobs, (task id, run), that a message with these keyword arguments carries."""
    if "jobs" in message:
        return [(task_id, run) for task_id, run in message["jobs"]]
    return [(message["task_id"], message["run"])]


def publish(tasks: list, patience: float) -> list[tuple[str, int, list]]:
    """Publish what is due: [(message uuid, published at, tasks that travel in it)].

    One broker transaction for all; one of uncertain fate raises QueueUnreachable.
    """
    if not tasks:
        return []
    published = []
    try:
        with _producer(patience) as producer:
            at = _redis_time(producer)
            with producer.batch(max_size=len(tasks) * 2):
                for group in travelling_together(tasks):
                    message = str(uuid.uuid4())
                    _send(producer, message, group, at)
                    published.append((message, at, group))
    except (BrokerError, KombuError, redis.RedisError, OSError) as error:
        raise QueueUnreachable(f"Celery's broker did not accept the work: {error}") from error
    return published


def travelling_together(tasks: Iterable) -> Iterator[list]:
    """Tasks by message. First attempts of a kind with a batch share one; a task with an attempt
    behind it travels alone, so that one that kills its worker costs its neighbours one attempt."""
    open_groups: dict[str, list] = {}
    for task in tasks:
        size = registry.kind(task.kind).batch
        if size == 1 or task.attempt:
            yield [task]
            continue
        group = open_groups.setdefault(task.kind, [])
        group.append(task)
        if len(group) == size:
            yield open_groups.pop(task.kind)
    yield from open_groups.values()


def _send(producer, message: str, group: list, at: int) -> None:
    kind = registry.kind(group[0].kind)
    limit = kind.time_limit + HARD_LIMIT_MARGIN_SECONDS
    if len(group) == 1:  # as workers of earlier releases know it
        (task,) = group
        jobs = {"task_id": task.pk, "run": task.run}
    else:
        jobs = {"jobs": [[task.pk, task.run] for task in group]}
        limit += registry.BATCH_SECONDS
    current_app.send_task(
        EXECUTE,
        kwargs=jobs | {"published_at": at},
        task_id=message,
        queue=kind.queue,
        time_limit=limit,
        producer=producer,
        retry=False,
        declare=[],  # lists need no declaration; one kept from before Redis was emptied is none
        add_to_parent=False,
        ignore_result=True,
    )


@contextmanager
def _producer(patience: float):
    """A kept producer. It serves one thread at a time; one that met an error is not kept."""
    kept = _kept[(os.getpid(), current_app.conf.broker_write_url, patience)]
    try:
        producer = kept.pop()
    except IndexError:
        options = settings.CELERY_BROKER_TRANSPORT_OPTIONS | {
            "socket_timeout": patience,
            "socket_connect_timeout": patience,
        }
        connection = current_app.connection_for_write(transport_options=options)
        producer = current_app.amqp.Producer(connection, auto_declare=False)
    try:
        yield producer
    except BaseException:
        with suppress(KombuError, redis.RedisError, OSError):
            producer.connection.release()
        raise
    if len(kept) == _KEPT:
        producer.connection.release()
    else:
        kept.append(producer)


def _redis_time(producer) -> int:
    seconds, micros = producer.channel.client.time()
    return seconds * 1_000_000 + micros
