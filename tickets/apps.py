from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TicketsConfig(AppConfig):
    name = "tickets"
    verbose_name = _("Helpdesk")

    def ready(self):
        from tickets import bulk, checks, reminders  # noqa: F401  BULK and REMINDER handlers
        from tickets.mail import jobs  # noqa: F401  registers the MAIL handler
