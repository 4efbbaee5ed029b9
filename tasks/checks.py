"""System checks of what the ledger relies on."""

from django.conf import settings
from django.core.checks import Error, register


@register()
def database_is_postgresql(app_configs, **kwargs):
    engine = settings.DATABASES["default"]["ENGINE"]
    if engine == "tasks.postgresql":
        return []
    return [
        Error(
            f"TeamDesk runs on PostgreSQL only; DATABASE_URL configures {engine}.",
            hint="Use postgresql://user:password@host:5432/name. The ledger relies on partial "
            "unique indexes, SKIP LOCKED and COPY.",
            id="tasks.E001",
        )
    ]
