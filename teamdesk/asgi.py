"""ASGI entry point, for servers that prefer it."""

import os

from django.core.asgi import get_asgi_application

from tasks.patience import PAGE_SECONDS, wait_at_most

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")

application = get_asgi_application()

wait_at_most(PAGE_SECONDS)
