"""``manage.py dispatch_once``: rounds of the dispatcher, for operations and where no beat runs."""

import argparse
import json
import math
import signal
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import asdict

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.backends.signals import connection_created

from tasks import patience
from tasks.dispatcher import Report, RoundFault, dispatch_once
from tasks.round_lock import RoundInProgress, RoundLock
from tasks.rounds import SKIPPED, attempt_round
from tasks.transactions import set_session_limits

WAIT_SECONDS = 10
EXIT_SKIPPED = 75  # EX_TEMPFAIL: try again later
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 86_400


class Command(BaseCommand):
    help = (
        "Run one dispatcher round and print what it did. Exit status: 0 done, 1 a fault (the "
        "reason on stderr), 75 skipped because another round did not end within 10 seconds. With "
        "--loop: rounds until SIGTERM or SIGINT, then 0; a fault is logged and the next round "
        "tries again."
    )

    def add_arguments(self, parser):
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object, a line for each round"
        )
        parser.add_argument(
            "--limit", type=_count, metavar="N", help="hand over at most N tasks in a round"
        )
        parser.add_argument(
            "--loop",
            type=_seconds,
            nargs="?",
            const=settings.TEAMDESK_ROUND_SECONDS,
            metavar="SECONDS",
            help="a round every so many seconds (default: TEAMDESK_ROUND_SECONDS)",
        )

    def handle(self, *args, **options):
        patience.wait_as_long_as_statements_may_take()
        with _limits_on_every_connection():
            if options["loop"]:
                self._loop(options["loop"], options["limit"], options["json"])
            else:
                self._once(options["limit"], options["json"])

    def _once(self, limit: int | None, as_json: bool) -> None:
        try:
            report = dispatch_once(wait_seconds=WAIT_SECONDS, limit=limit)
        except RoundInProgress as busy:
            if as_json:
                self._print(Report(), as_json, SKIPPED)
            else:
                self.stdout.write(SKIPPED)
            raise CommandError(str(busy), returncode=EXIT_SKIPPED) from busy
        except RoundFault as fault:
            self._print(fault.report, as_json, str(fault))
            raise CommandError(str(fault), returncode=1) from fault
        except DatabaseError as error:
            self._print(Report(), as_json, f"The database did not answer: {error}")
            raise CommandError(f"The database did not answer: {error}", returncode=1) from error
        self._print(report, as_json)

    def _loop(self, seconds: float, limit: int | None, as_json: bool) -> None:
        with _asked_to_leave() as leave, closing(RoundLock()) as lock:
            while not leave.is_set():
                started = time.monotonic()
                report, fault = attempt_round(lock, limit)
                # For people only what happened; a program wants to know that a round was.
                if as_json or any(report.counts.values()):
                    self._print(report, as_json, fault)
                    self.stdout.flush()
                leave.wait(max(0.0, seconds - (time.monotonic() - started)))

    def _print(self, report: Report, as_json: bool, fault: str | None = None) -> None:
        values = asdict(report) | {"fault": fault}
        if as_json:
            self.stdout.write(json.dumps(values))
        else:
            self.stdout.write(
                "  ".join(f"{name} {value}" for name, value in values.items() if value is not None)
            )


@contextmanager
def _limits_on_every_connection():
    """Also on the one that holds the round's lock, and on those that replace lost ones."""
    connection_created.connect(set_session_limits)
    try:
        if connection.connection is not None:  # opened before
            set_session_limits(connection=connection)
        yield
    finally:
        connection_created.disconnect(set_session_limits)


@contextmanager
def _asked_to_leave():
    """An event that SIGTERM and SIGINT set; the round under way ends first. The second signal does
    what it always does."""
    leave = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    usual = {number: signal.getsignal(number) for number in numbers}

    def ask(number, frame):
        leave.set()
        for each in numbers:
            signal.signal(each, usual[each])

    for number in numbers:
        signal.signal(number, ask)
    try:
        yield leave
    finally:
        for number in numbers:
            signal.signal(number, usual[number])


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of tasks")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds from {SHORTEST_SECONDS} to {LONGEST_SECONDS}"
        )
    return seconds
