"""A folder for temporary files that stays behind for no longer than its process."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "teamdesk-export-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder where ``TMPDIR`` says, removed at the end.

    A process that is killed leaves its folder to the next that wants one. Who is alive is told by a
    lock of the kernel, which ends with its process: process ids come again, and several
    installations may share one folder.

    Raises:
        OSError: there is no place for it.
    """
    remove_abandoned()
    path, lock = _new_folder()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def remove_abandoned() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _lock(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _new_folder() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = _lock(path)
        if lock is not None:
            return path, lock
        # Between its making and its lock another took it for abandoned.


def _lock(path: Path) -> int | None:
    """An open lock of this folder. None: another has it, it is not ours, or it is gone."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine, there = os.fstat(folder), path.stat()
    except (BlockingIOError, FileNotFoundError):
        os.close(folder)
        return None
    if os.path.samestat(mine, there) and mine.st_uid == os.geteuid():
        return folder
    os.close(folder)
    return None
