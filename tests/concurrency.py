"""Actors on connections of their own, so that races happen in a forced order."""

import threading
from concurrent.futures import Future

import pytest
from django.db import connection, connections, transaction


class Actor:
    """Runs functions one after another in a thread with its own database connection.

    ``do`` waits for the result; ``start`` does not. ``begin`` and ``commit`` hold a transaction
    open between them.
    """

    def __init__(self, name: str, wait_until):
        self._wait_until = wait_until
        self._todo: list[tuple] = []
        self._wake = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        self.name = name
        self.pid = self.do(self._own_pid)

    def start(self, work, *args, **kwargs) -> Future:
        future: Future = Future()
        with self._wake:
            self._todo.append((future, work, args, kwargs))
            self._wake.notify()
        return future

    def do(self, work, *args, **kwargs):
        return self.start(work, *args, **kwargs).result(timeout=30)

    def begin(self) -> None:
        self.do(self._begin)

    def commit(self) -> None:
        self.do(self._commit)

    def wait_until_blocked(self) -> None:
        """Until PostgreSQL says that this actor's connection waits for another's lock."""

        def is_blocked():
            with connection.cursor() as cursor:
                cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [self.pid])
                return cursor.fetchone()[0]

        self._wait_until(is_blocked, f"{self.name} waits for a lock")

    def end(self) -> None:
        with self._wake:
            self._ended = True
            self._wake.notify()
        self._thread.join(timeout=10)

    def _begin(self):
        self._atomic = transaction.atomic()
        self._atomic.__enter__()

    def _commit(self):
        self._atomic.__exit__(None, None, None)

    @staticmethod
    def _own_pid():
        connection.ensure_connection()
        return connection.connection.info.backend_pid

    def _work(self):
        try:
            while True:
                with self._wake:
                    while not self._todo and not self._ended:
                        self._wake.wait()
                    if not self._todo:
                        return
                    future, work, args, kwargs = self._todo.pop(0)
                try:
                    future.set_result(work(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)
        finally:
            connections.close_all()


@pytest.fixture
def actor(transactional_db, wait_until):
    """``actor("anna")``: a second connection to act in a race."""
    actors: list[Actor] = []

    def make(name: str) -> Actor:
        actors.append(Actor(name, wait_until))
        return actors[-1]

    yield make
    for each in actors:
        each.end()
