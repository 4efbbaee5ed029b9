"""WSGI entry point, served by gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

from tasks.patience import PAGE_SECONDS, wait_at_most

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")

application = get_wsgi_application()

wait_at_most(PAGE_SECONDS)
