"""How long this process waits for PostgreSQL's answer.

PostgreSQL's own timeouts end with PostgreSQL. A server that is frozen, or a proxy that lost it,
keeps the connection open and takes what is sent, so that neither keepalives nor
``tcp_user_timeout`` notice, and never answers. Only the client can give that up.
"""

import time

import psycopg
from django.conf import settings

MARGIN_SECONDS = 5  # PostgreSQL's own statement timeout comes first wherever it still works
PAGE_SECONDS = 60  # a web process has no statement timeout; nobody waits that long for a page


class PatientConnection(psycopg.Connection):
    """A connection that closes itself when one answer takes longer than ``patience`` seconds.

    The statement then raises OperationalError. Whether it was executed is unknown, as with every
    lost connection.
    """

    patience: float | None = None  # on the class: of this process; None: for ever

    def wait(self, gen, interval=0.1, timeout=None):
        if self.patience is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        started = time.monotonic()
        try:
            return super().wait(gen, interval, self.patience)
        except psycopg.OperationalError as error:
            if self.closed or time.monotonic() - started < self.patience:
                raise
            self.pgconn.finish()  # a ROLLBACK would wait as long again, and tell nobody
            raise psycopg.OperationalError(
                f"PostgreSQL kept the connection open and gave no answer for {self.patience:g} s."
            ) from error


def wait_at_most(seconds: float | None) -> None:
    """From now on no answer is waited for longer in this process. None: for ever."""
    PatientConnection.patience = seconds


def wait_as_long_as_statements_may_take() -> None:
    """For dispatchers and workers, whose sessions have a statement timeout."""
    wait_at_most(settings.TEAMDESK_STATEMENT_SECONDS + MARGIN_SECONDS)
