"""System checks of what mail relies on."""

from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import Warning, register
from django.http.request import validate_host

from tickets.mail import addresses


@register(deploy=True)
def mail_is_from_us_and_leads_to_us(app_configs, **kwargs):
    if not settings.TEAMDESK_MAIL:
        return []
    found = []
    if not validate_host(urlsplit(settings.TEAMDESK_URL).hostname, settings.ALLOWED_HOSTS):
        found.append(
            Warning(
                "The links in mail lead to a host that is not served here.",
                hint="Set TEAMDESK_URL to the address people use, and name it in ALLOWED_HOSTS.",
                id="tickets.W001",
            )
        )
    if addresses.domain() == "localhost":
        found.append(
            Warning(
                "Mail is sent as from localhost, which mail servers refuse.",
                hint="Set DEFAULT_FROM_EMAIL to an address of yours.",
                id="tickets.W002",
            )
        )
    return found
