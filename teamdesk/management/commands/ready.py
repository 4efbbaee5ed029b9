"""``manage.py ready``: what /readyz says, for containers that serve no pages."""

from django.core.management.base import BaseCommand, CommandError

from teamdesk.readiness import readiness


class Command(BaseCommand):
    help = (
        "Tell whether database, Redis, dispatcher and workers are well. Exit status 1 when one is "
        "not, with the reason on stderr. What is only late is named behind “ready”."
    )

    def handle(self, *args, **options):
        found = readiness()
        if not found.is_ready:
            raise CommandError("; ".join(found.complaints))
        self.stdout.write("; ".join(["ready", *found.warnings]))
