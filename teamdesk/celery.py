"""The Celery application. Its settings, with their reasons, are in settings.py (CELERY_*)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")

app = Celery("teamdesk")
app.config_from_object("django.conf:settings", namespace="CELERY")
