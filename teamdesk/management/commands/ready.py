"""``manage.py ready``: what /readyz says, for containers that serve no pages."""

from django.core.management.base import BaseCommand, CommandError

from teamdesk.health import readiness


class Command(BaseCommand):
    help = (
        "Tell whether database, Redis and dispatcher are well. Exit status 1 when one is not, with "
        "the reason on stderr."
    )

    def handle(self, *args, **options):
        unwell = {part: state for part, state in readiness().items() if state != "ok"}
        if unwell:
            raise CommandError("; ".join(f"{part}: {state}" for part, state in unwell.items()))
        self.stdout.write("ready")
