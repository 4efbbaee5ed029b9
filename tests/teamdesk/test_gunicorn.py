"""Probes have threads of their own, and a connection takes none before it has asked."""

import http.client
import json
import socket
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from teamdesk import gunicorn
from tests.faults.proxy import postgres_proxy  # noqa: F401  fixture

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

# Whoever sends a session's cookie makes a page ask the database who that is.
A_PAGE = "/tickets/", f"Cookie: sessionid={'x' * 32}\r\n"
HANGS = 20  # seconds, much longer than an answer may take: a hang is what these tests find


@pytest.fixture
def connect():
    """``connect(address)``: a connection that has sent nothing yet."""
    opened = []

    def connect(address):
        parts = urlsplit(address)
        opened.append(socket.create_connection((parts.hostname, parts.port), HANGS))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def ask(connection, path="/healthz", headers="") -> None:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())


def status(connection) -> bytes:
    return connection.recv(65_536).split(b"\r\n")[0]


def get(url):
    try:
        return urllib.request.urlopen(url, timeout=HANGS).read()
    except urllib.error.HTTPError as error:
        return error.read()


def test_probes_answer_while_all_threads_wait_for_a_frozen_postgresql(
    processes,
    connect,
    postgres_proxy,  # noqa: F811
):
    _, address = processes.web(DATABASE_URL=postgres_proxy.url)
    postgres_proxy.silence()
    waiting = [connect(address) for _ in range(3 * gunicorn.threads)]
    for connection in waiting:
        ask(connection, *A_PAGE)
    # They are handled in the order in which they came, these after those.
    for _ in range(3):
        assert "does not answer" in json.loads(get(f"{address}/readyz"))["database"]
        assert get(f"{address}/healthz") == b"ok\n"
    assert b"teamdesk_" in get(f"{address}/metrics")
    for connection in waiting:
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
    postgres_proxy.heal()
    for connection in waiting:
        connection.settimeout(60)
        assert status(connection) in (b"HTTP/1.1 302 Found", b"HTTP/1.1 500 Internal Server Error")


def test_who_says_nothing_takes_no_thread_and_may_still_ask(processes, connect):
    _, address = processes.web()
    silent = [connect(address) for _ in range(5 * gunicorn.threads)]
    assert get(f"{address}/accounts/login/")  # accepted after them
    late, in_parts, *others = silent
    ask(late, "/accounts/login/")
    assert status(late) == b"HTTP/1.1 200 OK"
    in_parts.sendall(b"GET /hea")
    assert get(f"{address}/healthz") == b"ok\n"
    in_parts.sendall(b"lthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(in_parts) == b"HTTP/1.1 200 OK"
    for connection in others:
        assert connection.recv(1) == b"", "it is closed after a while"


def test_a_kept_connection_asks_for_one_and_then_the_other(processes):
    _, address = processes.web()
    kept = http.client.HTTPConnection(urlsplit(address).netloc, timeout=HANGS)
    kept.connect()
    same = kept.sock
    for path in ("/healthz", "/accounts/login/", "/readyz?again", "/healthz"):
        kept.request("GET", path)
        answer = kept.getresponse()
        assert answer.status in (200, 503) and answer.read()
        assert kept.sock is same
    kept.close()


def test_only_probes_take_their_lane():
    assert b"GET /readyz HTTP/1.1".startswith(gunicorn._STARTS)
    assert b"HEAD /healthz?x=1 HTTP/1.1".startswith(gunicorn._STARTS)
    for request in (b"GET /readyzz HTTP/1.1", b"POST /readyz HTTP/1.1", b"GET /tickets/ HTTP"):
        assert not request.startswith(gunicorn._STARTS)
