from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExportsConfig(AppConfig):
    name = "exports"
    verbose_name = _("Exports")

    def ready(self):
        # They register the handlers and the purge.
        from exports import jobs, purge  # noqa: F401
        from exports.schedules import jobs as scheduled  # noqa: F401
