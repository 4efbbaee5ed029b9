"""Messages for Celery's workers: what they carry, and how they are published."""

import os
import time
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
# How long Redis's clock is counted on with our own before it is read again: a round trip less for
# each message. What it is compared with has a tolerance of LOST_AFTER_SECONDS.
_CLOCK_SECONDS = 10
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
        with _publisher(patience) as publisher:
            producer, at = publisher.producer, publisher.redis_time()
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


class _Publisher:
    """A producer on a connection of its own."""

    def __init__(self, patience: float):
        options = settings.CELERY_BROKER_TRANSPORT_OPTIONS | {
            "socket_timeout": patience,
            "socket_connect_timeout": patience,
        }
        self.connection = current_app.connection_for_write(transport_options=options)
        self.producer = current_app.amqp.Producer(self.connection, auto_declare=False)
        self._clock_read_at = float("-inf")

    def redis_time(self) -> int:
        """Microseconds since 1970 by Redis's clock."""
        now = time.monotonic()
        if now - self._clock_read_at > _CLOCK_SECONDS:
            seconds, micros = self.producer.channel.client.time()
            now = time.monotonic()  # not before: it may have had to connect first
            self._clock, self._clock_read_at = seconds * 1_000_000 + micros, now
        return self._clock + int((now - self._clock_read_at) * 1_000_000)

    def close(self) -> None:
        with suppress(KombuError, redis.RedisError, OSError):
            self.connection.release()


@contextmanager
def _publisher(patience: float):
    """A kept publisher. It serves one thread at a time; one that met an error is not kept."""
    kept = _kept[(os.getpid(), current_app.conf.broker_write_url, patience)]
    try:
        publisher = kept.pop()
    except IndexError:
        publisher = _Publisher(patience)
    try:
        yield publisher
    except BaseException:
        publisher.close()
        raise
    if len(kept) == _KEPT:
        publisher.close()
    else:
        kept.append(publisher)
