"""The real ledger and the real queue, as the machine reads, ages and disturbs them."""

import base64
import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import redis
from django.conf import settings
from django.db import connection
from django.test import override_settings

from exports.models import Export
from tasks import batch, dispatcher, queue, records, recovery, registry
from tasks.models import BackgroundTask
from tasks.queue import marking
from tasks.records import State
from tests.model import expected, kinds
from tests.model.expected import Queues, Record

microseconds = records.microseconds
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SETTINGS = {
    "TEAMDESK_RECHECK_SECONDS": expected.RECHECK_SECONDS,
    "TEAMDESK_LEASE_SECONDS": expected.LEASE_SECONDS,
    "TEAMDESK_PURGE_GRACE": timedelta(seconds=expected.GRACE_SECONDS),
    "TEAMDESK_RECORD_SECONDS": expected.RECORD_SECONDS,
    "TEAMDESK_ROUND_BUDGET_SECONDS": 120,
    "TEAMDESK_BATCH_SIZE": expected.BATCH_SIZE,  # so that a handful of tasks are several batches
    "TEAMDESK_FAST_PATH": False,
}
_CONSTANTS = [
    (records, "LOST_AFTER_SECONDS", expected.LOST_SECONDS),
    (marking, "LOST_AFTER_SECONDS", expected.LOST_SECONDS),
    (marking, "TOMBSTONE_SECONDS", expected.TOMBSTONE_SECONDS),
    (registry, "FREE_RETRIES", expected.FREE_RETRIES),
    (registry, "_kinds", kinds.KINDS),
    # What is bounded by the time it really takes must not be here.
    (registry, "BATCH_SECONDS", 600),
    (batch, "_GROUP_AFTER_SECONDS", 600),
    (dispatcher, "PROMOTE_SECONDS", 600),
    (dispatcher, "RECOVER_SECONDS", 600),
    (dispatcher, "PURGE_SECONDS", 600),
]


@contextmanager
def arranged():
    """The machine's settings, kinds and table, in a database where commits are real."""
    from tickets.models import User

    with ExitStack() as stack:
        stack.enter_context(override_settings(**_SETTINGS))
        for module, name, value in _CONSTANTS:
            stack.enter_context(patch.object(module, name, value))
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE model_effects (task bigint, run int, execution uuid)")
        requester = User.objects.create_user("the model's requester")
        try:
            yield
        finally:
            empty()
            requester.delete()
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE model_effects")


def empty() -> None:
    """Nothing of the example before is left; ids begin at 1 again."""
    client().flushall()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM exports_exportchunk; DELETE FROM exports_export;"
            "DELETE FROM tasks_taskattempt; DELETE FROM tasks_backgroundtask;"
            "DELETE FROM model_effects; ALTER SEQUENCE tasks_backgroundtask_id_seq RESTART"
        )


def request_result(task) -> None:
    """The business row beside a RESULT task."""
    from tickets.models import User

    requester = User.objects.get(username="the model's requester")
    Export.objects.create(task=task, requester=requester, columns=["id"], time_zone="UTC")


def cancel(pk: int) -> None:
    BackgroundTask.objects.get(pk=pk).cancel(reason="The model says so.")


def recover(pk: int) -> None:
    recovery.recover_together([BackgroundTask.objects.get(pk=pk)])


# --- PostgreSQL -----------------------------------------------------------------------------------

_FACTS = ("id", "kind", "status", "run", "attempt", "max_attempts", "execution_id", "dedup_key")
_TRACES = ("attempt", "effect", "chunk")
_PROGRESS = ("progress_done", "progress_total")
TIMES = ("run_at", "dispatched_at", "updated_at", "finished_at", "expires_at")


def rows() -> dict[int, dict]:
    """Every ledger row; its times as seconds from now. ``score`` is run_at as Redis keeps it."""
    times = [f"extract(epoch FROM {name} - clock_timestamp())::float8 AS {name}" for name in TIMES]
    return {
        row["id"]: row | {"score": (row["at"] - _EPOCH) // timedelta(microseconds=1)}
        for row in _select(
            f"SELECT {', '.join([*_FACTS, *_PROGRESS, *times])}, run_at AS at,"
            " dispatched_at AS checked_at FROM tasks_backgroundtask ORDER BY id"
        )
    }


@dataclass
class Traces:
    """What executions left beside the ledger's rows."""

    attempts: list[dict]  # oldest first
    effects: list[tuple]  # task, run, execution
    chunks: set[tuple]  # task, execution


def traces() -> Traces:
    found = _select(
        "SELECT 'attempt' AS what, id, task_id, run, attempt, execution_id, outcome"
        " FROM tasks_taskattempt"
        " UNION ALL SELECT 'effect', 0, task, run, 0, execution, '' FROM model_effects"
        " UNION ALL SELECT 'chunk', 0, export_id, 0, 0, execution_id, '' FROM exports_exportchunk"
        " ORDER BY id"
    )
    found_as = {name: [row for row in found if row["what"] == name] for name in _TRACES}
    return Traces(
        found_as["attempt"],
        sorted((row["task_id"], row["run"], row["execution_id"]) for row in found_as["effect"]),
        {(row["task_id"], row["execution_id"]) for row in found_as["chunk"]},
    )


def everything() -> list[str]:
    """All that a write could change, to the last column."""
    tables = ("tasks_backgroundtask", "tasks_taskattempt", "model_effects", "exports_export")
    rows = _select(" UNION ALL ".join(f"SELECT t::text AS text FROM {table} t" for table in tables))
    return sorted(row["text"] for row in rows)


def order_stamps(seconds: int) -> None:
    """Stamps younger than ``seconds`` are of one moment, in the order of ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tasks_backgroundtask SET dispatched_at = now() + id * interval '1 millisecond'"
            " WHERE dispatched_at > now() - make_interval(secs => %s)",
            [seconds],
        )


def _select(statement: str) -> list[dict]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


# --- Redis ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Message:
    """A message of Celery, as it lay in its list."""

    uuid: str
    queue: str
    jobs: list[str]
    published_at: int
    seen_at: int = 0  # by the machine's clock


_client = None


def client() -> redis.Redis:
    global _client
    if _client is None:
        _client = redis.Redis.from_url(settings.REDIS_URL)
    return _client


def take(name: str, seen: dict[str, int]) -> Message | None:
    """Take the oldest message off a list, as a worker does."""
    raw = client().rpop(name)
    return raw and _message(raw, name, seen)


def _message(raw: bytes, name: str, seen: dict[str, int] | None = None) -> Message:
    envelope = json.loads(raw)
    _, body, _ = json.loads(base64.b64decode(envelope["body"]))
    uuid = envelope["headers"]["id"]
    jobs = [f"{pk}:{run}" for pk, run in queue.jobs_of(body)]
    return Message(uuid, name, jobs, body["published_at"], (seen or {}).get(uuid, 0))


def queues() -> Queues:
    """All that the queue knows."""
    pipe = client().pipeline(transaction=False)
    pipe.time()
    pipe.zrange("teamdesk:delayed", 0, -1, withscores=True)
    for name in registry.QUEUES:
        pipe.lrange(name, 0, -1)
        pipe.get(f"teamdesk:watermark:{name}")
    (seconds, micros), delayed, *rest = pipe.execute()
    keys = list(client().scan_iter("teamdesk:job:*", count=1_000))
    pipe = client().pipeline(transaction=False)
    for key in keys:
        pipe.hgetall(key)
    hashes = pipe.execute(raise_on_error=False)
    return Queues(
        now=seconds * 1_000_000 + micros,
        records={
            key.decode().removeprefix("teamdesk:job:"): _record(fields)
            for key, fields in zip(keys, hashes, strict=True)
        },
        delayed={job.decode(): int(score) for job, score in delayed},
        lists={
            name: [_message(raw, name) for raw in rest[2 * number]]
            for number, name in enumerate(registry.QUEUES)
        },
        watermarks={
            name: int(rest[2 * number + 1] or 0) for number, name in enumerate(registry.QUEUES)
        },
    )


def _record(fields: dict[bytes, bytes] | Exception) -> Record | None:
    if isinstance(fields, Exception):  # no hash at all
        return None
    try:
        return Record(
            state=str(State(fields[b"state"].decode())),
            attempt=int(fields.get(b"attempt") or 0),
            message=fields.get(b"message", b"").decode(),
            at=int(fields.get(b"at") or 0),
        )
    except (KeyError, ValueError):
        return None
