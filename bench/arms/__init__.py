"""The queues that are compared. Each arm runs two jobs at a time and has a database of its own.

An arm's module (``bench.arms.NAME``) is loaded in its own processes only, with Django set up:

    enqueue(job, bulk)   put one job into the queue, in the caller's transaction; ``bulk``: one of
                         very many, as the queue's own documentation wants them
    TABLES               what a new round empties
"""

import os
import sys
from dataclasses import dataclass, replace

_NOT_KEPT = ("TEAMDESK_", "EMAIL_", "CELERY_", "DJANGO_", "PROCRASTINATE_", "PROMETHEUS_")
_CELERY = ("-m", "celery", "--quiet")
_PEERS = "bench.arms.settings"
_DJANGO = ("-m", "django")


@dataclass(frozen=True)
class Command:
    """A process. ``connects``: it opens a database connection by itself, without a job."""

    name: str
    arguments: tuple[str, ...]
    connects: bool = True


@dataclass(frozen=True)
class Arm:
    """How a queue is run.

    Attributes:
        name: in tables and JSON.
        module: of ``bench.arms``.
        database: its name; the module's where none is given.
        keeps_connections: Celery's worker is told to keep its database connection between tasks.
        redis_db: its database of Valkey.
        polls: it asks PostgreSQL again and again whether there is work.
        singles: share of the jobs of "one at a time": one that answers after a second does fewer.
        drains: measured with many jobs too; False for a variant that differs only when idle.
    """

    name: str
    module: str
    settings: str
    commands: tuple[Command, ...]
    redis_db: int
    polls: bool
    singles: float = 1.0
    drains: bool = True
    database: str = ""
    keeps_connections: bool = False

    def __post_init__(self):
        if not self.database:
            object.__setattr__(self, "database", self.module)


def _celery_worker(app: str, queue: str, processes: int) -> Command:
    arguments = ("-A", app, "worker", "--loglevel=WARNING", "-Q", queue, "-n", f"{queue}@%h")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    # It is the children that connect, each at its first job.
    return Command(
        f"worker-{queue}",
        (*_CELERY, *arguments, f"--concurrency={processes}", *quiet),
        connects=False,
    )


def _db_worker(number: int, *options: str) -> Command:
    return Command(
        f"worker-{number}", (*_DJANGO, "db_worker", "--no-startup-delay", "--no-reload", *options)
    )


def _procrastinate(number: int) -> Command:
    return Command(f"worker-{number}", (*_DJANGO, "procrastinate", "worker", f"--name=w{number}"))


OURS = Arm(
    "ours",
    module="ours",
    settings="bench.arms.ours_settings",
    commands=(
        _celery_worker("teamdesk", "short", 2),
        _celery_worker("teamdesk", "long", 1),  # of exports; idle here, but part of the system
        Command("beat", (*_CELERY, "-A", "teamdesk", "beat", "--pidfile=", "--loglevel=WARNING")),
    ),
    redis_db=0,
    polls=True,
)
CELERY = Arm(
    "celery",
    module="celery_on_commit",
    settings=_PEERS,
    commands=(_celery_worker("bench.arms.celery_on_commit", "celery", 2),),
    redis_db=1,
    polls=False,
)
CELERY_KEEPING = replace(CELERY, name="celery kept", keeps_connections=True)
OUTBOX = Arm(
    "django-celery-outbox",
    module="celery_outbox",
    settings=_PEERS,
    commands=(
        _celery_worker("bench.arms.celery_outbox", "celery", 2),
        Command("relay", (*_DJANGO, "celery_outbox_relay")),
    ),
    redis_db=2,
    polls=True,
    singles=0.2,
)
PROCRASTINATE = Arm(
    "procrastinate",
    module="procrastinate_jobs",
    settings=_PEERS,
    commands=(_procrastinate(1), _procrastinate(2)),
    redis_db=3,
    polls=True,
)
TASKS_DB = Arm(
    "django-tasks-db",
    module="tasks_db",
    settings=_PEERS,
    commands=(_db_worker(1), _db_worker(2)),
    redis_db=4,
    polls=True,
)
TASKS_DB_EAGER = Arm(
    "django-tasks-db 5 ms",
    module="tasks_db",
    settings=_PEERS,
    commands=(_db_worker(1, "--interval=0.005"), _db_worker(2, "--interval=0.005")),
    redis_db=4,
    polls=True,
    drains=False,
)

ARMS = (OURS, CELERY, CELERY_KEEPING, OUTBOX, PROCRASTINATE, TASKS_DB, TASKS_DB_EAGER)


def environment(arm: Arm, database_url: str, redis_url: str) -> dict[str, str]:
    """What every process of ``arm`` runs with, in place of what this shell has set."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_KEPT)}
    return kept | {
        "BENCH_ARM": arm.module,
        "BENCH_KEEP_CONNECTIONS": "1" if arm.keeps_connections else "",
        "DJANGO_SETTINGS_MODULE": arm.settings,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        # As in production: with DEBUG Django keeps every query in memory.
        "DEBUG": "False",
        "SECRET_KEY": "of the benchmark only, and long enough for every check",
        "ALLOWED_HOSTS": "localhost",
        "LOG_LEVEL": "WARNING",
        "PYTHONWARNINGS": "ignore",
        "REMAP_SIGTERM": "SIGQUIT" if arm is OURS else "",
    }


def python(command: Command) -> list[str]:
    return [sys.executable, *command.arguments]
