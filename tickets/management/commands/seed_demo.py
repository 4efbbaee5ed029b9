"""``manage.py seed_demo``: a small invented company to look around in."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from tickets.demo.cast import CAST, PASSWORD, bring_in_people, bring_in_teams
from tickets.demo.staging import COUNTS, Stage

_LOCK = 0x7EA3D300  # two at once: the second finds what the first added


class Command(BaseCommand):
    help = (
        "Add demo teams, people and about 300 tickets with their history. What exists stays as it "
        "is, so running it again adds nothing. The demo's password is known to everyone: without "
        "--force it is refused when DEBUG is off."
    )

    def add_arguments(self, parser):
        parser.add_argument("--force", action="store_true", help="also when DEBUG is off")

    def handle(self, *args, force, **options):
        if not settings.DEBUG and not force:
            raise CommandError(
                "DEBUG is off, and the demo's log-ins, an administrator among them, have a "
                "password that everyone knows. Use --force if this really is a demo."
            )
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            teams = bring_in_teams()
            people, known = bring_in_people(teams)
            stage = Stage(teams, people)
            added = sum(stage.play(slug) for slug in COUNTS)
        self.stdout.write(f"{added} demo tickets added.")
        self.stdout.write(f"Log-ins (password: {PASSWORD}):")
        for person in CAST:
            kept = " (existed already, password unchanged)" if person.username in known else ""
            self.stdout.write(f"  {person.username:<8} {person.about}{kept}")
