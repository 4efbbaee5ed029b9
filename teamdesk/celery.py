"""The Celery application. Its settings, with their reasons, are in settings.py (CELERY_*)."""

import os

from celery import Celery
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")

app = Celery("teamdesk")
app.config_from_object("django.conf:settings", namespace="CELERY")


@app.on_configure.connect
def _read_settings(**_):
    """Bad ones are said in one line, as manage.py does, instead of in two tracebacks."""
    try:
        settings.DEBUG  # noqa: B018  reading one reads them all
    except ImproperlyConfigured as error:
        raise SystemExit(f"celery: {error}") from None
