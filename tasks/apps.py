from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TasksConfig(AppConfig):
    name = "tasks"
    verbose_name = _("Background tasks")

    def ready(self):
        from tasks import checks, jobs  # noqa: F401  registers the system checks and our kinds
