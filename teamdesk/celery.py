"""The Celery application. Its settings, with their reasons, are in settings.py (CELERY_*)."""

import logging.config
import os

from celery import Celery, signals
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


@signals.setup_logging.connect
def _set_up_logging(**_):
    """Celery then sets up nothing of its own: its lines go where all others go and look like them.
    LOG_LEVEL counts, not --loglevel."""
    logging.config.dictConfig(settings.LOGGING)


@signals.worker_init.connect
def _check_metrics(**_):
    from teamdesk.exposition import refuse_to_show_one_of_several

    try:
        refuse_to_show_one_of_several()
    except ImproperlyConfigured as error:
        raise SystemExit(f"celery: {error}") from None


@signals.worker_ready.connect
@signals.beat_init.connect
def _serve_metrics(**_):
    """After a worker's first processes have begun: a thread does not live on in them."""
    from teamdesk.exposition import serve

    serve()
