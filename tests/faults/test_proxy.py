"""The proxy itself: what the faults below rest on."""

import socket

import pytest
import redis

from tests.faults.proxy import Proxy


@pytest.fixture
def client(redis_proxy):
    client = redis.Redis(port=redis_proxy.port, socket_timeout=0.5, retry=None)
    yield client
    client.close()


def test_it_passes_on(client, empty_queue):
    client.set("name", "x" * 1_000_000)
    assert len(empty_queue.get("name")) == len(client.get("name")) == 1_000_000


def test_while_silent_it_keeps_connections_open_and_answers_nothing(client, redis_proxy):
    client.ping()
    redis_proxy.silence()
    with pytest.raises(redis.TimeoutError):
        client.ping()
    with socket.create_connection(("127.0.0.1", redis_proxy.port), timeout=0.5) as fresh:
        fresh.sendall(b"PING\r\n")
        with pytest.raises(TimeoutError):
            fresh.recv(1)


def test_what_waited_in_it_is_passed_on_when_it_heals(redis_proxy):
    redis_proxy.silence()
    with socket.create_connection(("127.0.0.1", redis_proxy.port), timeout=10) as fresh:
        fresh.sendall(b"PING\r\n")
        redis_proxy.heal()
        assert fresh.recv(100) == b"+PONG\r\n"


def test_it_falls_silent_at_a_word(client, redis_proxy, empty_queue):
    redis_proxy.silence_at(b"secret")
    client.set("name", "open")
    with pytest.raises(redis.TimeoutError):
        client.set("name", "secret")
    assert redis_proxy.is_silent()
    assert empty_queue.get("name") == b"open"


def test_once_cut_it_refuses_until_it_heals(client, redis_proxy):
    client.ping()
    redis_proxy.cut()
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            client.ping()
    redis_proxy.heal()
    assert client.ping()


def test_it_ends_with_connections_open(tmp_path):
    proxy = Proxy(tmp_path / "nobody.sock")
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as fresh:
        assert fresh.recv(1) == b""  # nobody behind it
    proxy.end()
