"""Where the services are found."""

import hashlib
import os
import re
import socket
from pathlib import Path

DATABASE = "teamdesk"
_LONGEST_SOCKET_PATH = 100  # bytes, of the 107 that the kernel allows


def socket_folder(data: Path) -> Path:
    """The folder of both sockets: inside ``data``, or a short one under /tmp.

    The latter where ``data`` is too deep for the kernel, or has a character that would need its
    own quoting in each of PostgreSQL's settings, libpq's URLs and kombu's URLs.
    """
    inside = data / "run"
    if len(os.fsencode(inside / ".s.PGSQL.5432")) <= _LONGEST_SOCKET_PATH and re.fullmatch(
        r"[A-Za-z0-9/._-]+", str(inside)
    ):
        return inside
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return Path("/tmp") / f"teamdesk-{os.getuid()}-{digest}"  # noqa: S108  see Service._own_sockets


def database_url(data: Path, name: str = DATABASE) -> str:
    return f"postgresql://postgres@/{name}?host={socket_folder(data)}"


def redis_url(data: Path) -> str:
    return f"unix://{socket_folder(data) / 'valkey.sock'}?db=0"


def free_port() -> int:
    """A TCP port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
