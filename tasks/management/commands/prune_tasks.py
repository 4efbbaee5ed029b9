"""``manage.py prune_tasks``: the ledger forgets what ended long ago."""

import argparse
import sys
from datetime import timedelta

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.models import Count
from tqdm import tqdm

from tasks.models import BackgroundTask
from tasks.transactions import set_session_limits

MOST_DAYS = 36_500
EXIT_INTERRUPTED = 130


class Command(BaseCommand):
    help = (
        "Remove tasks that ended (completed, failed, cancelled) more than DAYS days ago, with "
        "their attempts and, of exports, the request. Waiting and running tasks and results that "
        "have not expired stay. Works in small transactions beside a running system; what was "
        "removed before an interruption stays removed. Exit status: 0 done, 1 a fault, 2 bad "
        "options, 130 interrupted."
    )

    def add_arguments(self, parser):
        parser.add_argument("--older-than", type=_days, required=True, metavar="DAYS")
        parser.add_argument("--dry-run", action="store_true", help="count them, remove nothing")

    def handle(self, *args, older_than, dry_run, **options):
        prunable = BackgroundTask.objects.prunable(older_than)
        kinds = dict(prunable.values_list("kind").annotate(Count("pk")).order_by("kind"))
        found = sum(kinds.values())
        if dry_run:
            self.stdout.write(f"{found} tasks would be removed{_by_kind(kinds)}.")
            return
        set_session_limits(connection=connection)
        removed = 0
        # None: shown on a terminal only.
        with tqdm(total=found, unit=" tasks", file=sys.stderr, disable=None) as bar:

            def progress(count):
                nonlocal removed
                bar.update(count - removed)
                removed = count

            try:
                BackgroundTask.objects.prune(older_than, progress=progress)
            except KeyboardInterrupt as interrupt:
                told = f"Interrupted. {removed} tasks were removed."
                raise CommandError(told, returncode=EXIT_INTERRUPTED) from interrupt
            except DatabaseError as error:
                raise CommandError(
                    f"The database failed: {error}\n{removed} tasks were removed before that; run "
                    "the command again for the rest."
                ) from error
        self.stdout.write(f"{removed} tasks removed{_by_kind(kinds if removed == found else {})}.")


def _by_kind(kinds: dict[str, int]) -> str:
    listed = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    return f" ({listed})" if listed else ""


def _days(text: str) -> timedelta:
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST_DAYS:
        return timedelta(days=int(text))
    raise argparse.ArgumentTypeError(f"{text!r} is no number of days from 1 to {MOST_DAYS}")
