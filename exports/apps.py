from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExportsConfig(AppConfig):
    name = "exports"
    verbose_name = _("Exports")

    def ready(self):
        from exports import jobs, purge  # noqa: F401  registers the EXPORT handler and the purge
