"""Starts real PostgreSQL and Valkey for the tests, before Django reads its settings.

Loaded as a pytest plugin (``-p tests.services`` in pyproject.toml). Everything lives in one
temporary folder that goes when the run ends, whatever its outcome.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from teamdesk.embedded import Postgres, Valkey, database_url, redis_url

FOLDER = Path(tempfile.mkdtemp(prefix="teamdesk-tests-"))
FOLDER.chmod(0o755)

# Durability is PostgreSQL's to prove, not ours: without fsync the tests run three times faster.
postgres = Postgres(
    FOLDER, {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
)
valkey = Valkey(FOLDER, {"appendonly": "no"})


def _stop():
    valkey.stop()
    postgres.stop()
    shutil.rmtree(FOLDER, ignore_errors=True)


atexit.register(_stop)
(FOLDER / "static").mkdir()  # whitenoise warns of a missing one
postgres.start()
valkey.start()

os.environ.update(
    DATABASE_URL=database_url(FOLDER),
    REDIS_URL=redis_url(FOLDER),
    SECRET_KEY="tests-only",
    TEAMDESK_VAR=str(FOLDER),  # a running TeamDesk of this checkout is not disturbed
    DEBUG="True",
    TEAMDESK_FAST_PATH="False",  # tests decide when a task is handed over
    EMAIL_URL="memorymail://",
)


def redis_client():
    import redis

    return redis.Redis(unix_socket_path=str(valkey.socket))


@contextlib.contextmanager
def valkey_killed():
    """``kill -9`` of Valkey; it starts again, empty, at the end of the block."""
    valkey.process.kill()
    valkey.process.wait()
    try:
        yield
    finally:
        valkey.start()
