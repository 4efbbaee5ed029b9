"""Starts real PostgreSQL and Valkey for the tests, before Django reads its settings.

Loaded as a pytest plugin (``-p tests.services`` in pyproject.toml). Everything lives in one
temporary folder that goes when the run ends, whatever its outcome; what a killed run left goes when
the next one starts.
"""

import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import psutil

from teamdesk.embedded import Postgres, Valkey, database_url, redis_url

_PREFIX = "teamdesk-tests-"
FOLDER = Path(tempfile.mkdtemp(prefix=_PREFIX))
FOLDER.chmod(0o755)
_PID = os.getpid()
(FOLDER / "pid").write_text(str(_PID))
(FOLDER / "static").mkdir()  # whitenoise warns of a missing one
# A running TeamDesk of this checkout is not disturbed. Everything that a test starts inherits this.
os.environ["TEAMDESK_VAR"] = str(FOLDER)

# Durability is PostgreSQL's to prove, not ours: without fsync the tests run three times faster.
postgres = Postgres(
    FOLDER, {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
)
valkey = Valkey(FOLDER, {"appendonly": "no"})


def _stop():
    if os.getpid() != _PID:  # a fork of a test
        return
    valkey.stop()
    postgres.stop()
    shutil.rmtree(FOLDER, ignore_errors=True)


def _clear_killed_runs():
    for old in FOLDER.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if psutil.pid_exists(int((old / "pid").read_text())):
                continue
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    if process.environ().get("TEAMDESK_VAR", "").startswith(str(old)):
                        process.kill()
            shutil.rmtree(old, ignore_errors=True)


_clear_killed_runs()
atexit.register(_stop)
# A CI run that is cancelled gets SIGTERM, which by itself would skip the line above.
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
postgres.start()
valkey.start()

os.environ.update(
    DATABASE_URL=database_url(FOLDER),
    REDIS_URL=redis_url(FOLDER),
    SECRET_KEY="tests-only",
    DEBUG="True",
    TEAMDESK_FAST_PATH="False",  # tests decide when a task is handed over
    TEAMDESK_CHORES="False",  # nor does a round insert what a test did not
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
