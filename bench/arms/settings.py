"""Django settings of the peers' processes: as small as each of them allows."""

import os

from teamdesk import environment as env

_ARM = os.environ["BENCH_ARM"]
_APPS = {
    "celery_on_commit": [],
    "celery_outbox": ["django_celery_outbox"],
    "procrastinate_jobs": ["procrastinate.contrib.django"],
    "tasks_db": ["django_tasks", "django_tasks_db"],
}

SECRET_KEY = os.environ["SECRET_KEY"]
DEBUG = False
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", *_APPS[_ARM]]
# Kept connections, as ours are.
DATABASES = {
    "default": env.database(os.environ["DATABASE_URL"])
    | {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
}

CELERY_BROKER_URL = env.broker(os.environ["REDIS_URL"])
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

# By default Celery closes the database connection before and after every task.
CELERY_DB_REUSE_MAX = 1_000_000_000 if os.environ.get("BENCH_KEEP_CONNECTIONS") else None

CELERY_OUTBOX_APP = "bench.arms.celery_outbox.app"
MONITORING_METRICS_ENABLED = False  # nobody listens to its StatsD packets here

PROCRASTINATE_AUTODISCOVER_MODULE_NAME = None
PROCRASTINATE_IMPORT_PATHS = ["bench.arms.procrastinate_jobs"]

TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default"]}}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
