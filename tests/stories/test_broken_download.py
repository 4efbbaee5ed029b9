"""Downloads that break off, from a real web server to curl."""

import random
import socket
import subprocess

import pytest
from django.db import connection

from tests.exports.conftest import file_url, stored  # noqa: F401  a fixture

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

MEBIBYTE = 2**20
PIECES = [random.Random(number).randbytes(MEBIBYTE // 2 + number) for number in range(60)]
FILE = b"".join(PIECES)  # larger than what the kernel keeps for a reader that does not read
BROKEN = {18, 52, 56}  # curl's: a part of the file, no answer, a failure while receiving

REFUSED = 22  # with --fail: an answer that is an error


@pytest.fixture
def export(stored):  # noqa: F811
    return stored(*PIECES)


@pytest.fixture
def curl(tmp_path):
    """``curl(agent, export, *options)``: writes to ``curl.path``; a running process."""

    def start(agent, export, *options: str) -> subprocess.Popen:
        return subprocess.Popen(
            [
                *("curl", "--silent", "--show-error", "--fail", "--output", start.path),
                *("--cookie", f"sessionid={agent.cookies['sessionid']}"),
                *(*options, agent.address + file_url(export)),
            ]
        )

    start.path = tmp_path / "file"
    return start


def test_a_download_goes_on_after_the_web_server_was_killed(
    processes, visitor, curl, export, wait_until
):
    web, address = processes.web()
    agent = visitor(address, "alice")
    first = curl(agent, export, "--limit-rate", "4M")
    wait_until(lambda: has(curl.path, MEBIBYTE), "a part of the file is there")
    web.kill()
    assert first.wait(60) in BROKEN
    part = curl.path.stat().st_size
    assert MEBIBYTE < part < len(FILE)

    _, agent.address = processes.web()
    assert curl(agent, export, "--continue-at", "-").wait(60) == 0
    assert curl.path.read_bytes() == FILE
    # Nothing is left to ask for, and nothing is added.
    assert curl(agent, export, "--continue-at", "-").wait(60) in (0, REFUSED)
    assert curl.path.read_bytes() == FILE


def test_a_download_whose_chunks_vanish_never_looks_whole(
    processes, visitor, curl, export, wait_until
):
    _, address = processes.web()
    agent = visitor(address, "alice")
    export.chunks.order_by("first_byte").last().delete()
    assert curl(agent, export).wait(60) in BROKEN
    assert curl.path.read_bytes() == b"".join(PIECES[:-1])
    # Nor does the rest of it, of which no byte is left to begin with.
    assert curl(agent, export, "--continue-at", "-").wait(60) == REFUSED
    assert curl.path.read_bytes() == b"".join(PIECES[:-1])
    assert agent.see("/exports/").status_code == 200


def test_head_of_a_real_server_tells_all_but_the_bytes(processes, visitor, export):
    _, address = processes.web()
    agent = visitor(address, "alice")
    head = agent.head(address + file_url(export), timeout=60)
    assert head.content == b""
    with agent.see(file_url(export), headers={"Range": "bytes=5-9"}) as part:
        assert (part.status_code, part.content) == (206, FILE[5:10])
    assert head.headers["Content-Length"] == str(len(FILE))
    assert head.headers["ETag"] == part.headers["ETag"]
    assert "Content-Encoding" not in head.headers


def test_readers_that_stop_or_go_away_hold_nothing(processes, visitor, export, wait_until):
    """Every thread of the server sends to somebody who does not read; none holds a transaction.
    When they hang up, the threads are free again."""
    _, address = processes.web()
    agent = visitor(address, "alice")
    readers = [begin_to_read(agent, export) for _ in range(4)]
    wait_until(lambda: len(readers_of_chunks()) == 4, "four downloads are under way")
    wait_until(lambda: set(readers_of_chunks()) == {("idle", False)}, "none holds anything")
    for reader in readers:
        reader.close()
    answers = [agent.see("/exports/", headers={"Connection": "close"}) for _ in range(8)]
    assert {answer.status_code for answer in answers} == {200}
    assert set(readers_of_chunks()) <= {("idle", False)}


def begin_to_read(agent, export) -> socket.socket:
    """One read of the answer, and then no more."""
    host, port = agent.address.removeprefix("http://").split(":")
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    reader.connect((host, int(port)))
    reader.sendall(
        f"GET {file_url(export)} HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Cookie: sessionid={agent.cookies['sessionid']}\r\n\r\n".encode()
    )
    assert b"200 OK" in reader.recv(100)
    return reader


def readers_of_chunks() -> list[tuple[str, bool]]:
    """State of each connection whose last statement read a chunk, and whether it is inside a
    transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state, xact_start IS NOT NULL FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND query LIKE '%%substring(data%%'"
        )
        return cursor.fetchall()


def has(path, size: int) -> bool:
    return path.exists() and path.stat().st_size > size
