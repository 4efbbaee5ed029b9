"""``manage.py ready``: what /readyz says, for containers that serve no pages."""

from django.core.management.base import BaseCommand, CommandError

from teamdesk.readiness import readiness


class Command(BaseCommand):
    help = (
        "Tell whether database, Redis, dispatcher and workers are well. Exit status 1 when one is "
        "not, with the reason on stderr. What is only late is named behind “ready”."
    )

    def add_arguments(self, parser):
        parser.add_argument(
            "parts",
            nargs="*",
            metavar="PART",
            help="Look at these alone: database, redis, dispatcher, workers_short, workers_long.",
        )

    def handle(self, *args, parts, **options):
        found = readiness()
        if unknown := set(parts) - set(found.parts):
            known = ", ".join(found.parts)
            raise CommandError(f"No such part: {', '.join(sorted(unknown))}; there are {known}.")
        if parts:
            found = found.only(parts)
        if not found.is_ready:
            raise CommandError("; ".join(found.complaints))
        self.stdout.write("; ".join(["ready", *found.warnings]))
