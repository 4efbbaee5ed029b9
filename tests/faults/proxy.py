"""A TCP proxy that can do what networks and frozen servers do to a connection."""

import contextlib
import socket
import threading
from pathlib import Path

import pytest
from django.db import connection

from teamdesk.embedded import free_port
from tests import services

_PIECE = 65_536


class Proxy:
    """Passes connections to its address on to a Unix socket.

    While silent it keeps every connection open, accepts new ones, and passes nothing on in either
    direction: bytes wait in it as they would in a frozen server's kernel, which acknowledges them.
    """

    def __init__(self, upstream: Path):
        self._upstream = str(upstream)
        self._passing = threading.Event()
        self._passing.set()
        self._pattern = self._last_words = b""
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port = free_port()
        self._listen()

    def silence(self) -> None:
        """From now on nothing passes."""
        self._passing.clear()

    def silence_at(self, pattern: bytes) -> None:
        """Fall silent when a client sends ``pattern`` in one piece, which is not passed on before
        ``heal``."""
        self._pattern = pattern

    def cut_at_the_answer_to(self, pattern: bytes) -> None:
        """Once: what a client sends in a piece with ``pattern`` is passed on and done, and its
        connection is lost before the answer. It cannot know what became of it."""
        self._last_words = pattern

    def is_silent(self) -> bool:
        return not self._passing.is_set()

    def heal(self) -> None:
        """What waited is passed on, and so is everything after it."""
        self._pattern = b""
        self._passing.set()
        if self._listener is None:
            self._listen()

    def cut(self) -> None:
        """Every connection is lost with what waited in it, and none is accepted until ``heal``."""
        listener, self._listener = self._listener, None
        if listener:
            _hang_up(listener)
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _hang_up(each)
        self._passing.set()  # whoever waits finds its connection lost

    end = cut

    def _listen(self):
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._start(self._accept, self._listener)

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                with self._lock:
                    self._sockets |= {client, server}
                self._start(self._open, client, server)

    def _open(self, client, server):
        self._passing.wait()
        try:
            server.connect(self._upstream)
        except OSError:
            _hang_up(client)
            return
        last_words = threading.Event()
        self._start(self._pass, server, client, lambda piece: _break_off(last_words))
        self._pass(client, server, lambda piece: self._watch(piece, last_words))

    def _pass(self, source, target, look=lambda piece: None):
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                look(piece)
                self._passing.wait()
                target.sendall(piece)
        self._passing.wait()  # a silent peer does not say goodbye either
        _hang_up(target)
        _hang_up(source)

    def _watch(self, piece, last_words):
        if self._last_words and self._last_words in piece:
            self._last_words = b""
            last_words.set()
        if self._pattern and self._pattern in piece:
            self._pattern = b""
            self.silence()

    def _start(self, work, *arguments):
        threading.Thread(target=work, args=arguments, name="proxy", daemon=True).start()


def _break_off(last_words: threading.Event) -> None:
    if last_words.is_set():
        raise ConnectionAbortedError


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
    end.close()


@pytest.fixture
def postgres_proxy(transactional_db):
    """A proxy before PostgreSQL; ``url`` is the test's database through it."""
    (upstream,) = Path(services.postgres.sockets).glob(".s.PGSQL.*[0-9]")
    proxy = Proxy(upstream)
    name = connection.settings_dict["NAME"]
    proxy.url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}?sslmode=disable"
    yield proxy
    proxy.end()


@pytest.fixture
def redis_proxy():
    """A proxy before Valkey; ``url`` is the same Redis through it."""
    proxy = Proxy(services.valkey.socket)
    proxy.url = f"redis://127.0.0.1:{proxy.port}/0"
    yield proxy
    proxy.end()


def through(proxy: Proxy) -> None:
    """The calling thread's database connections go through ``proxy`` from now on."""
    connection.close()
    there = {"HOST": "127.0.0.1", "PORT": proxy.port}
    options = connection.settings_dict["OPTIONS"] | {"connect_timeout": 2, "sslmode": "disable"}
    connection.settings_dict = connection.settings_dict | there | {"OPTIONS": options}
