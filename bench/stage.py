"""PostgreSQL and Valkey of a benchmark, started for it alone, and a database for each arm."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import redis

from bench.arms import Arm, environment
from bench.processes import ROOT
from teamdesk.embedded import Postgres, ServiceError, Valkey, database_url

# Durable, as in production: fsync and synchronous_commit stay on. The other lines only let the
# benchmark see when a row was committed and how many statements were run.
POSTGRES = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "track_commit_timestamp": "on",
    "shared_preload_libraries": "pg_stat_statements",
}
VALKEY = {"appendonly": "yes", "appendfsync": "everysec"}

_TABLES = """
CREATE TABLE bench_orders (job bigint NOT NULL);
CREATE TABLE bench_effects (
    job bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at double precision, picked_up_at double precision, called_at double precision
);
CREATE INDEX ON bench_effects (job);
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
"""


class Stage:
    def __init__(self, folder: Path):
        self.folder = folder
        self.postgres = Postgres(folder, POSTGRES)
        self.valkey = Valkey(folder, VALKEY)

    def start(self) -> None:
        self.postgres.start()
        self.valkey.start()

    def stop(self) -> None:
        self.valkey.stop()
        self.postgres.stop()

    def prepare(self, arm: Arm) -> None:
        """Its database, with its tables. Raises ServiceError when migrations fail."""
        with self.postgres.connect() as connection:
            known = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [arm.database]
            ).fetchone()
            if known:
                return
            connection.execute(f'CREATE DATABASE "{arm.database}"')
        done = subprocess.run(
            [sys.executable, "-m", "django", "migrate", "--verbosity=0"],
            cwd=ROOT,
            env=self.environment(arm),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ServiceError(f"The tables of {arm.name} were not made:\n{done.stderr[-2000:]}")
        with self.connect(arm) as connection:
            connection.execute(_TABLES)

    def environment(self, arm: Arm) -> dict[str, str]:
        url = f"unix://{self.valkey.socket}?db={arm.redis_db}"
        paths = {"TEAMDESK_VAR": str(self.folder), "PYTHONPATH": str(ROOT)}
        return environment(arm, database_url(self.folder, arm.database), url) | paths

    def connect(self, arm: Arm) -> psycopg.Connection:
        return self.postgres.connect(arm.database)

    def valkey_client(self, number: int = 0) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.valkey.socket), db=number)

    def cpu_seconds(self) -> float:
        """Of both servers so far, with those of their processes that ended."""
        return sum(cpu_seconds(service.pid) for service in (self.postgres, self.valkey))


def cpu_seconds(pid: int) -> float:
    """Of a process, its living children and those it has waited for."""
    process = psutil.Process(pid)
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def stage():
    """Both servers in a folder that goes with the benchmark."""
    folder = Path(tempfile.mkdtemp(prefix="teamdesk-bench-", dir=os.environ.get("TMPDIR", "/tmp")))  # noqa: S108
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own when we are root
    (folder / "static").mkdir()  # whitenoise warns of a missing one
    servers = Stage(folder)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
        shutil.rmtree(folder, ignore_errors=True)
