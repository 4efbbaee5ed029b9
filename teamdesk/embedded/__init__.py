"""Development and test services: real PostgreSQL and Valkey out of pip wheels.

Both listen on Unix sockets only, so nothing installed on the machine is needed or disturbed. Where
their sockets are follows from the data folder alone (not from TMPDIR, not from the terminal), which
is why every ``manage.py`` command finds the running services with no variable set.
"""

from .places import database_url, free_port, redis_url, socket_folder
from .postgres import Postgres
from .service import ServiceError
from .valkey import Valkey

__all__ = [
    "Postgres",
    "ServiceError",
    "Valkey",
    "database_url",
    "free_port",
    "redis_url",
    "socket_folder",
]
