"""``gunicorn --config python:teamdesk.gunicorn``: processes, threads, log, a lane for probes."""

import logging.config
import os
import socket
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from itertools import product
from selectors import EVENT_READ

from gunicorn.glogging import Logger as GunicornsLogger
from gunicorn.workers.gthread import DEFAULT_WORKER_DATA_TIMEOUT, ThreadWorker

PROBES_AT_ONCE = 4  # of each process, beside its threads for people
_STARTS = tuple(
    b"%s /%s%s" % parts
    for parts in product((b"GET", b"HEAD"), (b"healthz", b"readyz", b"metrics"), (b" ", b"?"))
)
_LONGEST = max(map(len, _STARTS))


class Logger(GunicornsLogger):
    """Its lines look like all others."""

    def setup(self, cfg):
        super().setup(cfg)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")
        from django.conf import settings

        logging.config.dictConfig(settings.LOGGING)
        for log in (self.error_log, self.access_log):
            log.handlers = []
            log.propagate = True


class Worker(ThreadWorker):
    """Answers probes although all its threads wait, for a database that is frozen or for readers of
    large files: probes have threads of their own.

    So it must know what is asked before it gives a connection to a thread. A connection that has
    sent nothing yet waits beside the kept-alive ones, and takes no thread from anybody.
    """

    def get_thread_pool(self):
        return _Lanes(super().get_thread_pool())

    def enqueue_req(self, conn):
        if conn.initialized or conn.data_ready or _sent_so_far(conn) is not None:
            super().enqueue_req(conn)
        else:
            self._wait_for_data(conn)

    def _wait_for_data(self, conn) -> None:
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + DEFAULT_WORKER_DATA_TIMEOUT
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))


class _Lanes(Executor):
    """One for probes beside the threads for all else."""

    def __init__(self, threads: ThreadPoolExecutor):
        self._threads = threads
        self._probes = ThreadPoolExecutor(PROBES_AT_ONCE, "probes")

    def submit(self, handle, conn) -> Future:
        is_probe = (_sent_so_far(conn) or b"").startswith(_STARTS)
        return (self._probes if is_probe else self._threads).submit(handle, conn)

    def shutdown(self, wait=True, *, cancel_futures=False) -> None:
        for pool in (self._threads, self._probes):
            pool.shutdown(wait, cancel_futures=cancel_futures)


def _sent_so_far(conn) -> bytes | None:
    """The next request's beginning, left there. None: nothing came yet; empty: nothing will."""
    try:
        return conn.sock.recv(_LONGEST, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""  # the thread that handles it will meet the same


# gunicorn's settings, for each of which a command-line option goes first.
workers = 2
threads = 4
worker_class = Worker
logger_class = Logger
control_socket_disable = True
