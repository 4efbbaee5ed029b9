"""The embedded PostgreSQL and Valkey: their data stays, whatever ended them."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
import redis

from teamdesk.embedded import (
    Postgres,
    ServiceError,
    Valkey,
    database_url,
    redis_url,
    socket_folder,
)
from teamdesk.processes import command_line
from tests import services


@pytest.fixture
def data():
    """A folder that PostgreSQL's unprivileged user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="embedded-", dir=services.FOLDER))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    sockets = socket_folder(folder)
    if sockets != folder / "run":
        shutil.rmtree(sockets, ignore_errors=True)


@pytest.fixture
def started():
    """Starts services and stops them at the end."""
    running = []

    def start(service):
        running.append(service)
        return service.start()

    yield start
    for service in running:
        service.stop()


def remember(postgres: Postgres, text: str):
    with postgres.connect("teamdesk") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS memory (text text)")
        connection.execute("INSERT INTO memory VALUES (%s)", [text])


def remembered(postgres: Postgres) -> list[str]:
    with postgres.connect("teamdesk") as connection:
        return [text for (text,) in connection.execute("SELECT text FROM memory ORDER BY text")]


@pytest.mark.processes
def test_postgres_keeps_its_data_over_stops_kills_and_orphans(data, started):
    first = started(Postgres(data))
    remember(first, "before a stop")
    first.stop()

    second = started(Postgres(data))
    remember(second, "before a kill")
    os.kill(second.pid, signal.SIGKILL)
    second.process.wait()
    assert (data / "postgres" / "postmaster.pid").exists()

    third = started(Postgres(data))
    remember(third, "before its launcher was killed")
    # Nobody stops it: a new launcher finds it running.
    fourth = started(Postgres(data))
    assert third.process.wait(10) == 0
    assert remembered(fourth) == [
        "before a kill",
        "before a stop",
        "before its launcher was killed",
    ]


@pytest.mark.processes
def test_a_recorded_pid_that_is_now_another_program_hinders_nothing(data, started):
    """After a power cut the pid in postmaster.pid may belong to anything of the same user."""
    postgres = started(Postgres(data))
    postgres.stop()
    # As root PostgreSQL runs as a user of its own, so that the program must be that user's.
    owner = (data / "postgres").stat().st_uid
    program = subprocess.Popen(["sleep", "600"], user=owner if os.getuid() == 0 else None)
    lines = f"{program.pid}\n{data / 'postgres'}\n1700000000\n5432\n{socket_folder(data)}\n\n0 0\n"
    (data / "postgres" / "postmaster.pid").write_text(lines)
    try:
        started(Postgres(data))
        assert program.poll() is None
    finally:
        program.kill()
        program.wait()


@pytest.mark.processes
def test_a_half_made_cluster_is_made_again(data, started):
    making = data / "postgres.making"
    making.mkdir()
    (making / "PG_VERSION").write_text("18\n")
    started(Postgres(data))
    assert not making.exists()


@pytest.mark.processes
def test_valkey_keeps_messages_over_a_kill_and_stops_an_orphan(data, started):
    first = started(Valkey(data))
    with redis.Redis.from_url(redis_url(data)) as client:
        client.rpush("short", "a message")
        client.execute_command("WAITAOF", 1, 0, 5000)
    first.process.kill()
    first.process.wait()

    second = started(Valkey(data))
    third = started(Valkey(data))
    assert second.process.wait(10) == 0
    with redis.Redis.from_url(redis_url(data)) as client:
        assert client.lrange("short", 0, -1) == [b"a message"]
    assert "valkey-server" in " ".join(command_line(third.pid))


@pytest.mark.processes
def test_they_run_in_a_deep_folder_with_any_name(data, started):
    deep = data / ("deeper, and 'deeper'/" * 6) / '100% "ours" é'
    postgres, valkey = started(Postgres(deep)), started(Valkey(deep))
    remember(postgres, "deep")
    assert remembered(postgres) == ["deep"]
    with redis.Redis.from_url(redis_url(deep)) as client:
        assert client.ping()
    valkey.stop()
    postgres.stop()
    shutil.rmtree(socket_folder(deep))


def test_sockets_are_inside_the_data_folder_where_the_kernel_allows():
    assert socket_folder(Path("/srv/teamdesk/var")) == Path("/srv/teamdesk/var/run")
    assert (
        database_url(Path("/srv/td/var")) == "postgresql://postgres@/teamdesk?host=/srv/td/var/run"
    )
    for awkward in ("/srv/" + "d" * 100, "/srv/two words/var", "/srv/a#b", "/srv/100%", "/srv/a?b"):
        short = socket_folder(Path(awkward))
        assert short.parent == Path("/tmp")
        assert short != socket_folder(Path(awkward + "2"))


def test_where_they_are_does_not_depend_on_the_terminal(monkeypatch):
    before = socket_folder(Path("/srv/two words"))
    monkeypatch.setenv("TMPDIR", "/somewhere/else")
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert socket_folder(Path("/srv/two words")) == before


def test_a_socket_folder_laid_by_somebody_else_is_refused(data):
    deep = data / ("d" * 100)
    elsewhere = data / "elsewhere"
    elsewhere.mkdir()
    socket_folder(deep).symlink_to(elsewhere)
    try:
        with pytest.raises(ServiceError, match="belongs to somebody else"):
            Valkey(deep).start()
    finally:
        socket_folder(deep).unlink()


@pytest.mark.processes
def test_a_service_that_cannot_start_says_why(data):
    with pytest.raises(ServiceError, match=r"valkey ended at once; its log says:[\s\S]*nonsense"):
        Valkey(data, {"maxmemory-policy": "nonsense"}).start()
    with pytest.raises(ServiceError, match=r"postgres ended at once[\s\S]*shared_buffers"):
        Postgres(data, {"shared_buffers": "nonsense"}).start()
