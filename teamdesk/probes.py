"""Questions that may hang, asked so that nobody waits long and nothing piles up."""

import threading
import time
from collections.abc import Callable

from django.db import connection, connections


class NoAnswer(Exception):
    """None within the time. The text says whether an earlier question waits still."""


class Probe:
    """A question to one part of the system.

    It is asked in a thread, because no timeout of a client covers all that can hang: a name that
    does not resolve, a server that is frozen. While one thread waits for its answer no second one
    is started; who comes meanwhile shares the answer or learns that there is none.
    """

    def __init__(self, question: Callable):
        self._question = question
        self._lock = threading.Lock()
        self._asking: _Asking | None = None

    def ask(self) -> "_Asking":
        """Begins to ask, or joins those who wait already. ``answer`` waits."""
        with self._lock:
            if self._asking is None or self._asking.is_done:
                self._asking = _Asking(self._question)
            return self._asking


class _Asking:
    def __init__(self, question: Callable):
        self._question = question
        self._done = threading.Event()
        self._answer = self._error = None
        self.since = time.monotonic()
        if connection.in_atomic_block:
            self._run()  # a caller's transaction is seen by its own connection alone
        else:
            threading.Thread(target=self._run_apart, name="probe", daemon=True).start()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def answer(self, deadline: float, patience: float):
        """What the question returned, or raises what it raised.

        Args:
            deadline: of the caller, as ``time.monotonic()`` counts.
            patience: seconds after which a question counts as one that hangs.

        Raises NoAnswer.
        """
        age = time.monotonic() - self.since
        hangs = age > patience and not self.is_done
        if not self._done.wait(0 if hangs else max(0.0, deadline - time.monotonic())):
            raise NoAnswer(
                f"still does not answer, for {age:.0f} s" if hangs else "does not answer"
            )
        if self._error:
            raise self._error
        return self._answer

    def _run(self):
        try:
            self._answer = self._question()
        except Exception as error:  # noqa: BLE001  raised again where the answer is wanted
            self._error = error
        finally:
            self._done.set()

    def _run_apart(self):
        try:
            self._run()
        finally:
            connections.close_all()
