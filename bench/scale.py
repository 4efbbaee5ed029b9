"""A ledger with 100 far-off tasks beside one with a million of them and ten million finished."""

import statistics
from argparse import Namespace
from dataclasses import dataclass, replace

from bench.arms import OURS
from bench.comparison import account, say
from bench.measuring import Book
from bench.metrics import latency
from bench.running import ArmFailed, RunningArm
from bench.stage import Stage

ROUND = "a round of the dispatcher"
SMALL = OURS
LARGE = replace(OURS, name="large ledger", database="ours_large", redis_db=5)
FAR_OFF = 100  # of the small ledger: one batch of a round

_MOMENTS = ("created_at", "run_at", "dispatched_at", "updated_at", "started_at", "finished_at")

# KEYS record, delayed set. ARGV its job, what stands before a job in a record's key, the first id,
# ids from … to. Each task is due a second after the one before it.
_COPY_RECORD = """
local at, expires = redis.call('ZSCORE', KEYS[2], ARGV[1]), redis.call('EXPIRETIME', KEYS[1])
for id = tonumber(ARGV[4]), tonumber(ARGV[5]) do
    local job = string.format('%d:0', id)
    local seconds = id - tonumber(ARGV[3])
    local mine = string.format('%d', tonumber(at) + seconds * 1000000)
    redis.call('COPY', KEYS[1], ARGV[2] .. job, 'REPLACE')
    redis.call('HSET', ARGV[2] .. job, 'at', mine)
    redis.call('EXPIREAT', ARGV[2] .. job, expires + seconds)
    redis.call('ZADD', KEYS[2], mine, job)
end
"""
_RECORDS_AT_ONCE = 2_000  # a script of seconds makes Valkey refuse all others


@dataclass(frozen=True)
class Size:
    waiting: int
    finished: int
    singles: int
    dispatches: int  # in each ledger and round


FULL = Size(waiting=1_000_000, finished=10_000_000, singles=200, dispatches=20)
QUICK = Size(waiting=20_000, finished=100_000, singles=20, dispatches=5)


def measure_scale(stage: Stage, options: Namespace) -> Book:
    book, size = Book(tell=say), QUICK if options.quick else FULL
    with RunningArm(stage, SMALL) as small, RunningArm(stage, LARGE) as large:
        for running, waiting, finished in (
            (small, FAR_OFF, 0),
            (large, size.waiting, size.finished),
        ):
            _grow(running, waiting, finished)
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            pair = (small, large) if number % 2 == 0 else (large, small)
            for running in pair:
                _dispatch(running, book, size.dispatches)
            for running in pair:
                _one_at_a_time(running, book, size.singles)
    return book


def _grow(running: RunningArm, waiting: int, finished: int) -> None:
    """Rows like those that a real task left, which is done first; then all that the queue knows of
    the waiting ones, and the statistics that autovacuum would have made by now."""
    say(f"{running.arm.name}: {waiting:,} waiting, {finished:,} finished")
    running.start()
    running.stop()
    connection = running.connection
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = off")
        # No look-up of each attempt's task, ten million of them at the commit.
        connection.execute("SET LOCAL session_replication_role = replica")
        task, attempt = connection.execute(
            "SELECT task.id, attempt.id FROM tasks_backgroundtask task "
            "JOIN tasks_taskattempt attempt ON attempt.task_id = task.id "
            "WHERE task.kind = 'BENCH' AND task.status = 'COMPLETED' LIMIT 1"
        ).fetchone()
        if finished:
            # Of the past year, the oldest first, as they would have come.
            past = f"now() - ({finished} - i) * (interval '1 year' / {finished})"
            _copy(running, "tasks_backgroundtask", task, finished, dict.fromkeys(_MOMENTS, past))
            _attempts_of_finished(running, attempt)
        far_off = {
            "status": "'WAITING'",
            "attempt": "0",
            "started_at": "NULL",
            "finished_at": "NULL",
            "run_at": "now() + interval '30 days' + i * interval '1 second'",
            # Compared with the queue an hour ago and later: each round finds a batch to compare.
            "dispatched_at": "now() - interval '1 hour' + i * interval '1 millisecond'",
        }
        _copy(running, "tasks_backgroundtask", task, waiting, far_off)
    for table in ("tasks_backgroundtask", "tasks_taskattempt"):
        connection.execute(f"VACUUM (ANALYZE) {table}")
    first, last = connection.execute(
        "SELECT min(id), max(id) FROM tasks_backgroundtask "
        "WHERE kind = 'BENCH' AND status = 'WAITING'"
    ).fetchone()
    _tell_the_queue(running, first, last)
    connection.execute("CHECKPOINT")


def _tell_the_queue(running: RunningArm, first: int, last: int) -> None:
    """The first of the waiting tasks is handed over as a round does it; the others get the same
    record, each with its own time, in Valkey itself: a million hand-overs would take an hour."""
    running.ask("hand_over", task_id=first)
    with running.stage.valkey_client(running.arm.redis_db) as client:
        job = f"{first}:0"
        (record,) = (key.decode() for key in client.scan_iter(f"*{job}", _type="hash"))
        sets = list(client.scan_iter(_type="zset"))
        (delayed,) = (each for each in sets if client.zscore(each, job) is not None)
        for start in range(first + 1, last + 1, _RECORDS_AT_ONCE):
            end = min(start + _RECORDS_AT_ONCE - 1, last)
            prefix = record.removesuffix(job)
            client.eval(_COPY_RECORD, 2, record, delayed, job, prefix, first, start, end)


def _attempts_of_finished(running: RunningArm, attempt: int) -> None:
    """One for each copy; what ran for real has its own."""
    changed = {
        "task_id": "i",
        "execution_id": "gen_random_uuid()",
        "started_at": "task.started_at",
        "finished_at": "task.finished_at",
    }
    done = """(SELECT id AS i, started_at, finished_at FROM tasks_backgroundtask
               WHERE id > (SELECT max(task_id) FROM tasks_taskattempt)) task"""
    _copy_from(running, "tasks_taskattempt", attempt, done, changed)


def _copy(running: RunningArm, table: str, row: int, times: int, changed: dict[str, str]) -> None:
    _copy_from(running, table, row, f"generate_series(1, {times}) i", changed)


def _copy_from(running, table: str, row: int, source: str, changed: dict[str, str]) -> None:
    """INSERT copies of ``row`` for each row of ``source``, with other values in some columns."""
    names = running.connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND table_name = %s AND column_name <> 'id'",
        [table],
    ).fetchall()
    columns = [name for (name,) in names]
    values = [changed.get(name, f"template.{name}") for name in columns]
    running.connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} "
        f"FROM {source}, (SELECT * FROM {table} WHERE id = {row}) template"
    )


def _dispatch(running: RunningArm, book: Book, times: int) -> None:
    """Rounds that each compare one batch of far-off tasks with the queue; the large ledger always
    has such a batch, the small one is brought to it."""
    seconds = []
    for _ in range(times):
        if running.arm is SMALL:
            running.connection.execute(
                "UPDATE tasks_backgroundtask SET dispatched_at = dispatched_at - interval '1 hour' "
                "WHERE kind = 'BENCH' AND status = 'WAITING'"
            )
        done = running.ask("one_round")
        if (done["rechecked"], done["readded"]) != (FAR_OFF, 0):
            raise ArmFailed(f"{running.arm.name}: not what a round does with far-off tasks: {done}")
        seconds.append(done["took"])
    book.add(running.arm.name, ROUND, "ms", statistics.median(seconds) * 1000)


def _one_at_a_time(running: RunningArm, book: Book, jobs: int) -> None:
    running.connection.execute("TRUNCATE bench_orders, bench_effects")
    running.start()
    waits, _ = latency.waits(running, first=0, jobs=jobs)
    running.stop()
    account(running, book)
    if waits:
        book.add(running.arm.name, latency.MEDIAN, "ms", statistics.median(waits))
