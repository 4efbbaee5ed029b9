"""Loads the soak's kinds in every process; gives all kinds attempts that kills cannot use up."""

from dataclasses import fields, replace

from django.apps import AppConfig


class SoakingConfig(AppConfig):
    name = "bench.soaking"

    def ready(self):
        from bench.soaking import kinds
        from tasks import registry

        # A kill costs the attempt, and so does a database that goes away under a handler: in a soak
        # that is the weather, and a task that it ends as FAILED would prove nothing. Everything
        # else of each kind's policy stays.
        for kind in registry.kinds().values():
            if kind.ladder:
                patient = replace(kind, ladder=kinds.LADDER)
                policy = {
                    field.name: getattr(patient, field.name)
                    for field in fields(patient)
                    if field.name not in ("name", "handler")
                }
                registry.handles(kind.name, **policy)(kind.handler)
