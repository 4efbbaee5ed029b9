"""``manage.py dispatch_once``: one dispatcher round, for operations and experiments."""

import json
from dataclasses import asdict

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from tasks import patience
from tasks.dispatcher import Report, RoundFault, dispatch_once
from tasks.round_lock import RoundInProgress
from tasks.transactions import set_session_limits

WAIT_SECONDS = 10
EXIT_SKIPPED = 75  # EX_TEMPFAIL: try again later


class Command(BaseCommand):
    help = (
        "Run one dispatcher round and print what it did. Exit status: 0 done, 1 a fault (the "
        "reason on stderr), 75 skipped because another round did not end within 10 seconds."
    )

    def add_arguments(self, parser):
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args, **options):
        try:
            patience.wait_as_long_as_statements_may_take()
            set_session_limits(connection=connection)
            report = dispatch_once(wait_seconds=WAIT_SECONDS)
        except RoundInProgress as busy:
            if options["json"]:
                self._print(Report(), as_json=True, fault="skipped")
            else:
                self.stdout.write("skipped")
            raise CommandError(str(busy), returncode=EXIT_SKIPPED) from busy
        except RoundFault as fault:
            self._print(fault.report, options["json"], str(fault))
            raise CommandError(str(fault), returncode=1) from fault
        except DatabaseError as error:
            self._print(Report(), options["json"], f"The database did not answer: {error}")
            raise CommandError(f"The database did not answer: {error}", returncode=1) from error
        self._print(report, options["json"])

    def _print(self, report: Report, as_json: bool, fault: str | None = None) -> None:
        values = asdict(report) | {"fault": fault}
        if as_json:
            self.stdout.write(json.dumps(values))
        else:
            self.stdout.write(
                "  ".join(f"{name} {value}" for name, value in values.items() if value is not None)
            )
