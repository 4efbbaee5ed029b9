"""What the launcher makes sure of before it starts anything: its folder, its disk and its port."""

import errno
import fcntl
import shutil
import socket
from pathlib import Path

NEEDED_BYTES = 200 * 1024**2  # a fresh cluster is 50 MB, its write-ahead log as much again


class Refusal(Exception):
    """TeamDesk cannot run here; the message says why, for a person."""


class FolderLock:
    """The lock of one launcher on its folder. It ends with the process, however that ends."""

    def __init__(self, file: Path):
        self._file = file.open("a+")  # kept open: closing it would end the lock
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            who = self._file.read().strip()
            raise Refusal(f"TeamDesk already runs from this folder ({who}).") from None

    def tell(self, who: str) -> None:
        """What another launcher will say of this one."""
        self._file.truncate(0)
        self._file.write(who)
        self._file.flush()


def take_folder(var: Path) -> FolderLock:
    """Raises Refusal when another launcher has it or its disk is full; OSError when it cannot be
    written."""
    try:
        var.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise Refusal(
            f"{var} cannot be used: it is not a folder. Move it away, or name another place in "
            "TEAMDESK_VAR."
        ) from None
    lock = FolderLock(var / "launcher.lock")
    (var / "static").mkdir(exist_ok=True)
    free = shutil.disk_usage(var).free
    if free < NEEDED_BYTES:
        raise Refusal(
            f"{var} has {free // 1024**2} MB free; {NEEDED_BYTES // 1024**2} MB are needed."
        )
    return lock


def take_port(port: int) -> socket.socket:
    """Listens already now: nobody else can take the port, and no visitor is refused while the web
    process is started again."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=512)
    except OSError as error:
        reason = {
            errno.EADDRINUSE: "is in use by another program",
            errno.EACCES: "may not be used by this user",
        }.get(error.errno, f"cannot be used: {error.strerror}")
        raise Refusal(
            f"Port {port} of 127.0.0.1 {reason}; choose another: bin/up --port N"
        ) from None
