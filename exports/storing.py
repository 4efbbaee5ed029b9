"""Storing the file while it is made."""

import uuid
from concurrent.futures import Future, ThreadPoolExecutor

from django.db import connection

from exports.formats import Block
from exports.models import Export, ExportChunk


class Storing:
    """Stores blocks as chunks, each in a transaction of its own and in their order. While one is
    being stored the next is made; at most three are in memory.

    A file of one block is stored as it is. With the second begins a thread with a connection of its
    own. That one waits for no disk: should PostgreSQL crash it may lose what it has just committed,
    but never without all that was committed later, and the export's result counts by its last
    commit, which waits.

    Attributes:
        size: bytes of the blocks that were added.
        rows: those of the file up to the last block that is stored.
    """

    def __init__(self, export: Export, execution_id: uuid.UUID):
        self.size = self.rows = 0
        self._chunk_of = (export, execution_id)
        self._next: tuple[int, Block] | None = None
        self._under_way: tuple[Future, Block] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        """Nothing is stored any more after it, whatever happened."""
        if self._thread:
            self._thread.submit(lambda: connection.close())  # the thread's own
            self._thread.shutdown()

    def add(self, block: Block) -> None:
        """Raises what storing an earlier one raised: a database error."""
        if self._next:
            self._wait()
            self._begin()
        self._next = (self.size, block)
        self.size += len(block.data)

    def finish(self) -> None:
        """All that was added is stored. Raises likewise."""
        if not self._next:
            return
        self._wait()
        if self._thread:
            self._begin()
            self._wait()
        else:
            first_byte, block = self._next
            ExportChunk.objects.store(*self._chunk_of, first_byte, block.data)
            self.rows = block.rows
        self._next = None

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "storing")
            self._thread.submit(_do_not_wait_for_the_disk).result()
        first_byte, block = self._next
        stored = self._thread.submit(
            ExportChunk.objects.store, *self._chunk_of, first_byte, block.data
        )
        self._under_way = (stored, block)

    def _wait(self) -> None:
        if self._under_way:
            stored, block = self._under_way
            stored.result()
            self.rows = block.rows


def _do_not_wait_for_the_disk() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
