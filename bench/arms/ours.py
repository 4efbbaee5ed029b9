"""Our arm: a kind like any other, with a table row per attempt and every fence on."""

import time

from celery import signals
from django.db import connection

from bench.arms.effect import write_effect
from tasks import queue
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask
from tasks.registry import handles

TABLES = ("tasks_taskattempt", "tasks_backgroundtask")

_message = {"published_at": 0.0, "picked_up_at": 0.0}


@signals.task_prerun.connect
def _note_when(task=None, kwargs=None, **extra):
    if task.name == queue.EXECUTE:
        published_at = (kwargs or {}).get("published_at", 0) / 1e6
        _message.update(published_at=published_at, picked_up_at=time.time())


@handles("BENCH", ladder=(1, 5, 30), batch=50)
def bench(task, lease):
    called_at = time.time()
    return lambda: write_effect(task.payload["job"], **_message, called_at=called_at)


def enqueue(job: int, bulk: bool = False) -> None:
    BackgroundTask.objects.enqueue("BENCH", payload={"job": job}, fast_path_wanted=not bulk)


def bare_insert():
    """``insert()`` adds the row that ``enqueue`` adds, by a plain INSERT on the same cursor."""
    task = BackgroundTask.objects.enqueue("BENCH", payload={"job": 0}, fast_path_wanted=False)
    columns = [field for field in BackgroundTask._meta.concrete_fields if not field.primary_key]
    values = [
        field.get_db_prep_save(field.value_from_object(task), connection) for field in columns
    ]
    statement = (
        f"INSERT INTO {BackgroundTask._meta.db_table} ({', '.join(f.column for f in columns)}) "
        f"VALUES ({', '.join(['%s'] * len(columns))})"
    )

    def insert() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)

    return insert


def one_round() -> dict:
    """What a round of the dispatcher did, in this process, and how long it ``took`` in seconds."""
    started = time.perf_counter()
    report = dispatch_once()
    return {"took": time.perf_counter() - started} | report.counts


def hand_over(task_id: int) -> None:
    queue.add(BackgroundTask.objects.with_is_due().filter(pk=task_id))
