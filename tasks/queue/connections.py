"""Conversations with Redis over kept connections, and the names of what it holds."""

from contextlib import contextmanager

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

# What a stalled or absent Redis may cost: a round stops at the first error, a worker goes on
# without its record, the fast path gives up within its 250 ms.
PATIENCE_SECONDS = 2.0

_PREFIX = "teamdesk:"
DELAYED = f"{_PREFIX}delayed"

_clients: dict[tuple[str, float], redis.Redis] = {}


class QueueUnreachable(Exception):
    """Redis did not answer. What was being handed over is neither recorded nor stamped."""


def record_key(job: str) -> str:
    return f"{_PREFIX}job:{job}"


def watermark_key(queue: str) -> str:
    return f"{_PREFIX}watermark:{queue}"


@contextmanager
def conversation(patience: float = PATIENCE_SECONDS):
    """A client for one conversation; its errors become QueueUnreachable.

    The connections behind it are kept. Each is looked at before it is used again, so one whose
    Redis was restarted is replaced; one that failed is closed, so a late answer is never read as
    the answer to something else.
    """
    try:
        yield _client(patience)
    except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
        raise QueueUnreachable(f"Redis did not answer: {error}") from error
    except redis.RedisError as error:
        raise QueueUnreachable(f"Redis refused: {error}") from error


def is_of_wrong_type(reply) -> bool:
    """Someone put something else under a key of ours: it is no record, and is replaced."""
    return isinstance(reply, redis.ResponseError) and str(reply).startswith("WRONGTYPE")


def _client(patience: float) -> redis.Redis:
    key = (settings.REDIS_URL, patience)
    if key not in _clients:  # a pool is safe among threads and notices a fork
        _clients[key] = redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=patience,
            socket_connect_timeout=patience,
            retry=Retry(NoBackoff(), 0),
            # With version 3 the pool takes a closed connection for one with a notification.
            protocol=2,
        )
    return _clients[key]
