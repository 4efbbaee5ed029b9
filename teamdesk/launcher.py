"""The whole helpdesk on one machine: what ``bin/up`` runs.

Starts the embedded services, brings the database up to date, then runs web, workers and beat,
starts again whatever ends, and on Ctrl-C or SIGTERM stops all that it started and nothing else.
"""

import argparse
import contextlib
import http.client
import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from teamdesk.embedded import Postgres, ServiceError, Valkey
from teamdesk.premises import FolderLock, Refusal, take_folder, take_port
from teamdesk.processes import MARK, Console, Keeper, Process, end, left_behind

ROOT = Path(__file__).resolve().parent.parent
WEB_STOP_SECONDS = 15  # gunicorn's graceful timeout is 10

_CELERY = ("-m", "celery", "--quiet", "-A", "teamdesk")
# Celery warns root because of pickled messages; ours are JSON, and the socket is ours alone.
_ROOT_IS_FINE = "ignore:You're running the worker with superuser privileges"


class Launcher:
    def __init__(self, port: int, demo: bool):
        self.var = settings.TEAMDESK_VAR
        self.port = port
        self.demo = demo
        # What a worker gives its running tasks on shutdown.
        self.grace_seconds = settings.CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT
        self.console = Console()
        self.say = self.console.say
        # All processes count in one folder, so that web's /metrics shows them together.
        self.metrics = self.var / "metrics"
        self.counting = {"PROMETHEUS_MULTIPROC_DIR": str(self.metrics)}
        self.interrupts = 0
        self.listener: socket.socket | None = None
        self.services: list[Keeper] = []
        self.errand: Process | None = None
        self.logins = ""
        self.stages: list[list[Keeper]] = []  # in the order in which they are stopped
        self.lock: FolderLock | None = None

    def run(self) -> None:
        """Until interrupted. Raises Refusal, and stops whatever was started before."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupt)
        try:
            self.lock = take_folder(self.var)
            orphans = left_behind(str(self.var))
            if orphans:
                self.say(f"Stopping {len(orphans)} processes that an earlier start left behind.")
                end(orphans, self.grace_seconds + 5)
            self.listener = take_port(self.port)
            self.port = self.listener.getsockname()[1]
            self.lock.tell(f"process {os.getpid()}, http://127.0.0.1:{self.port}/")
            self._start_services()
            self._prepare_database()
            if not self.interrupts:
                self._start_processes()
                self._keep()
        except ServiceError as error:
            if not self.interrupts:
                raise Refusal(str(error)) from error
        except OSError as error:
            raise Refusal(f"{self.var} cannot be used: {error.strerror or error}") from error
        finally:
            self._stop()

    def _interrupt(self, number, frame):
        self.interrupts += 1
        if self.interrupts > 1:
            for keeper in [*self.services, *self._keepers()]:
                keeper.kept.hurry()
            if self.errand:
                self.errand.hurry()

    # Start

    def _start_services(self):
        for service, variable in ((Postgres, "DATABASE_URL"), (Valkey, "REDIS_URL")):
            if os.environ.get(variable) or self.interrupts:
                continue
            self.say(f"Starting {service.name} …")
            self.services.append(Keeper(service(self.var), self.console))
            self.services[-1].start()

    def _prepare_database(self):
        self._manage(
            "migrate", "--no-input", "--verbosity=0", why="Bringing the database up to date"
        )
        if not settings.DEBUG:
            self._manage("collectstatic", "--no-input", "--verbosity=0", why="Collecting files")
        if settings.DEBUG and not self.interrupts:
            self._prepare_demo()

    def _prepare_demo(self):
        import django
        from django.db import DatabaseError, connection

        django.setup()
        try:
            if self.demo and _is_empty():
                self._manage("seed_demo", why="Loading demo data (--no-demo does without)")
            self.logins = _demo_logins()
        except DatabaseError as error:
            raise Refusal(f"The database does not answer: {error}") from error
        finally:
            connection.close()

    def _manage(self, command: str, *options: str, why: str) -> None:
        if self.interrupts:
            return
        self.say(f"{why} …")
        self.errand = self._process(command, "manage.py", command, *options)
        self.errand.start()
        while self.errand.is_running():
            if self.interrupts:
                self.errand.ask_to_stop()
            time.sleep(0.05)
        self.errand.wait(0)
        if self.errand.process.returncode and not self.interrupts:
            raise Refusal(f"{command} failed ({self.errand.end}); its lines above say why.")

    def _start_processes(self):
        fd = self.listener.fileno()
        shutil.rmtree(self.metrics, ignore_errors=True)  # they count from 0 at every start
        self.metrics.mkdir()
        web = self._process(
            "web",
            *("-m", "gunicorn", "teamdesk.wsgi", "--config=python:teamdesk.gunicorn"),
            *(f"--bind=fd://{fd}", "--graceful-timeout=10"),
            environment=self.counting,
            pass_fds=(fd,),
        )
        beat = self._process("beat", *_CELERY, "beat", "--loglevel=INFO", environment=self.counting)
        workers = [self._worker("short", 2), self._worker("long", 1)]
        self.stages = [
            [Keeper(process, self.console) for process in stage]
            for stage in ([web], workers, [beat])
        ]
        for keeper in self._keepers():
            keeper.start()

    def _worker(self, queue: str, processes: int) -> Process:
        return self._process(
            f"worker-{queue}",
            *(*_CELERY, "worker", "--loglevel=INFO"),
            *("-Q", queue, "-n", f"{queue}@%h", f"--concurrency={processes}"),
            # Workers do not talk to each other: that costs Redis traffic and nobody listens.
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            # SIGTERM then means: give running tasks a moment, hand the others back, leave.
            environment={"REMAP_SIGTERM": "SIGQUIT", "PYTHONWARNINGS": _ROOT_IS_FINE}
            | self.counting,
            # Of the worker's own terminal; here it would be taken as advice to press it again.
            unsaid="Hitting Ctrl+C again",
        )

    def _process(
        self, name: str, *arguments: str, environment=None, pass_fds=(), unsaid=""
    ) -> Process:
        environment = {
            MARK: str(self.var),
            "PYTHONUNBUFFERED": "1",
            # The links in mail lead to this very port, unless somebody decided otherwise.
            "TEAMDESK_URL": os.environ.get("TEAMDESK_URL") or f"http://127.0.0.1:{self.port}",
        } | (environment or {})
        command = [sys.executable, *arguments]
        return Process(name, command, self.console, ROOT, environment, pass_fds, unsaid)

    def _keepers(self) -> list[Keeper]:
        return [keeper for stage in self.stages for keeper in stage]

    # While it runs

    def _keep(self):
        ready = False
        while not self.interrupts:
            for keeper in [*self.services, *self._keepers()]:
                keeper.look()
            if not ready and self._answers():
                ready = True
                self._say_ready()
            time.sleep(0.1)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _say_ready(self):
        self.say(f"\nTeamDesk is ready at http://127.0.0.1:{self.port}/")
        if settings.EMAIL_BACKEND == "tickets.mail.files.EmailBackend":
            self.say(f"Mail is kept in {settings.EMAIL_FILE_PATH}, one .eml file each.")
        self.say(f"{self.logins}Ctrl-C stops it.\n")

    # Stop

    def _stop(self):
        running = self.stages or self.services
        if running:
            self.say("\nStopping …" if self.interrupts < 2 else "\nStopping at once …")
        if self.listener:
            self.listener.close()
        for stage in self.stages:
            for keeper in stage:
                keeper.kept.ask_to_stop()
            for keeper in stage:
                keeper.kept.wait(max(WEB_STOP_SECONDS, self.grace_seconds + 10))
        if running:
            end(left_behind(str(self.var)), 1)
        for keeper in reversed(self.services):
            keeper.kept.stop()
        if running:
            self.say("Stopped.")


def _is_empty() -> bool:
    """Nobody and nothing is in the database yet."""
    from tickets.models import Ticket, User

    return not (User.objects.exists() or Ticket.objects.exists())


def _demo_logins() -> str:
    """The demo's people who still have the demo's password, for the console."""
    from django.contrib.auth.hashers import check_password

    from tickets.demo.cast import CAST, PASSWORD
    from tickets.models import User

    cast = {person.username: person for person in CAST}
    hashes = dict(User.objects.filter(username__in=cast).values_list("username", "password"))
    # Made together, they share one hash; so a slow check is needed once, not for each.
    open_hashes = {one for one in set(hashes.values()) if check_password(PASSWORD, one)}
    lines = [
        f"  {name:<8} {person.about}\n"
        for name, person in cast.items()
        if hashes.get(name) in open_hashes
    ]
    return f"Demo log-ins (password: {PASSWORD}):\n{''.join(lines)}" if lines else ""


def _port(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 <= (port := int(text)) <= 65535:
            return port
    raise argparse.ArgumentTypeError(f"“{text}” is no port; use 1 to 65535, or 0 for any free one")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bin/up", description="Run TeamDesk on this machine.")
    parser.add_argument("--port", type=_port, default=8000, help="of 127.0.0.1 (default: 8000)")
    parser.add_argument("--no-demo", action="store_true", help="start with an empty helpdesk")
    options = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal that knows fewer characters than people
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")
    try:
        Launcher(options.port, demo=not options.no_demo).run()
    except (Refusal, ImproperlyConfigured) as refusal:
        with contextlib.suppress(OSError):
            print(f"bin/up: {refusal}", file=sys.stderr, flush=True)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
