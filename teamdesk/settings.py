"""Settings, all from the environment. README lists every variable.

With none set, TeamDesk runs in development on the embedded services that ``bin/up`` starts. With
``DEBUG=False`` everything a deployment must decide for itself is required, and a missing or
malformed value is an error at start.
"""

from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from teamdesk import environment as env

BASE_DIR = Path(__file__).resolve().parent.parent

env.read_file(BASE_DIR / ".env")


def _embedded(url):
    def of_our_own_service():
        from teamdesk import embedded

        return getattr(embedded, url)(TEAMDESK_VAR)

    return of_our_own_service


# Logs, collected static files and the embedded services' data.
TEAMDESK_VAR = (BASE_DIR / env.text("TEAMDESK_VAR", "var")).resolve()

DEBUG = env.boolean("DEBUG", True)
SECRET_KEY = env.required("SECRET_KEY", DEBUG and (lambda: "development-only-and-known-to-all"))
ALLOWED_HOSTS = env.listed("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.listed("CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "tasks",
    "tickets",
    "exports",
    "teamdesk",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "csp",
]

MIDDLEWARE = [
    "teamdesk.middleware.RequestIdMiddleware",
    "teamdesk.health.ProbeMiddleware",  # before all that judges a request by its host
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "teamdesk.middleware.PersonalSettingsMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "teamdesk.urls"
WSGI_APPLICATION = "teamdesk.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "tickets.context.frame",
            ],
        },
    }
]

# PostgreSQL decides everything; another engine is refused by a system check.
DATABASES = {
    "default": env.database(env.required("DATABASE_URL", DEBUG and _embedded("database_url")))
    | {
        "CONN_MAX_AGE": env.number("TEAMDESK_CONN_MAX_AGE", 60, of=int),
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,  # transactions sit on the verbs
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "tickets.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "ticket_list"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.time_zone("TIME_ZONE", "UTC")

STATIC_URL = "static/"
STATIC_ROOT = TEAMDESK_VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        # In development files are served as they are, with nothing to collect first.
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG

# Scripts and styles come from our own files alone: no inline script, no inline style.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],  # the CSS library's icons are data: images
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
CSRF_FAILURE_VIEW = "teamdesk.accounts.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.boolean("TEAMDESK_SECURE_COOKIES", not DEBUG)
SECURE_SSL_REDIRECT = env.boolean("TEAMDESK_SSL_REDIRECT", False)
SECURE_HSTS_SECONDS = env.number("TEAMDESK_HSTS_SECONDS", 0, of=int)
# Whether other hosts of the domain follow is decided by the owner of the domain, not here.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
TEAMDESK_METRICS_TOKEN = env.text("TEAMDESK_METRICS_TOKEN", "")
TEAMDESK_METRICS_PORT = env.number("TEAMDESK_METRICS_PORT", 0, 0, int)  # of workers and beat
if TEAMDESK_METRICS_PORT > 65_535:
    raise ImproperlyConfigured(f"TEAMDESK_METRICS_PORT={TEAMDESK_METRICS_PORT} is no port.")
TEAMDESK_METRICS_ADDRESS = env.text("TEAMDESK_METRICS_ADDRESS", "127.0.0.1")
if env.boolean("TEAMDESK_BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Development keeps its mail in files. Production sends none until it is told by which server.
TEAMDESK_MAIL = DEBUG or bool(env.text("EMAIL_URL"))
_mail_folder = "filemail:///" + quote(str(TEAMDESK_VAR / "mail"))
vars().update(env.email("EMAIL_URL", _mail_folder if DEBUG else "dummymail://"))
EMAIL_TIMEOUT = 20  # seconds, of each wait for the server; tickets.mail.smtp bounds them all
DEFAULT_FROM_EMAIL = env.sender("DEFAULT_FROM_EMAIL", "TeamDesk <teamdesk@localhost>")
# Where people reach TeamDesk: neither a mail nor a workbook can ask its reader's browser. Unknown
# where production sends no mail and nobody says it; workbooks then have no links.
TEAMDESK_URL = env.web_address(
    "TEAMDESK_URL", "http://127.0.0.1:8000" if DEBUG else None if TEAMDESK_MAIL else ""
)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"about": {"()": "teamdesk.logs.About"}},
    "formatters": {
        "line": {"()": "teamdesk.logs.Line"},
        "json": {"()": "teamdesk.logs.Json"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "filters": ["about"],
            "formatter": env.choice("TEAMDESK_LOG_FORMAT", "line", ["line", "json"]),
        }
    },
    "loggers": {
        # Django gives these handlers of their own, which would say it all twice, and differently.
        "django": {"handlers": [], "propagate": True},
        "django.server": {"handlers": [], "propagate": True},
        # The pool of Celery's worker; its logger hands nothing up.
        "multiprocessing": {"handlers": ["console"], "propagate": False},
    },
    "root": {"handlers": ["console"], "level": env.log_level("LOG_LEVEL", "INFO")},
}

# --- The ledger -------------------------------------------------------------------------------

TEAMDESK_ROUND_SECONDS = env.number("TEAMDESK_ROUND_SECONDS", 3, 0.05)  # beat's rhythm
TEAMDESK_ROUND_BUDGET_SECONDS = env.number("TEAMDESK_ROUND_BUDGET_SECONDS", 2.5, 0.05)  # of a scan
TEAMDESK_BATCH_SIZE = env.number("TEAMDESK_BATCH_SIZE", 100, 1, int)
TEAMDESK_RECHECK_SECONDS = env.number("TEAMDESK_RECHECK_SECONDS", 30, 1)
TEAMDESK_LEASE_SECONDS = env.number("TEAMDESK_LEASE_SECONDS", 120, 1)
TEAMDESK_RENEWAL_SECONDS = env.number("TEAMDESK_RENEWAL_SECONDS", 30, 0.05)
# Of dispatcher and workers; a PostgreSQL that answers nothing is given up 5 s later.
TEAMDESK_STATEMENT_SECONDS = env.number("TEAMDESK_STATEMENT_SECONDS", 30, 1)
TEAMDESK_FAST_PATH = env.boolean("TEAMDESK_FAST_PATH", True)
TEAMDESK_RECORD_SECONDS = env.number("TEAMDESK_RECORD_SECONDS", 86_400, 60, int)  # queue records
TEAMDESK_CHORES = env.boolean("TEAMDESK_CHORES", True)  # canaries, pruning
TEAMDESK_KEEP_DAYS = env.number("TEAMDESK_KEEP_DAYS", 90, 0, int)  # ended tasks; 0: for ever
TEAMDESK_EXPORT_TTL = timedelta(hours=env.number("TEAMDESK_EXPORT_TTL_HOURS", 24, 0))
TEAMDESK_SCHEDULES_PER_PERSON = env.number("TEAMDESK_SCHEDULES_PER_PERSON", 50, 0, int)
TEAMDESK_EXPORTS_PER_PERSON = env.number("TEAMDESK_EXPORTS_PER_PERSON", 10, 1, int)  # under way
TEAMDESK_EXPORT_MAX_ROWS = env.number("TEAMDESK_EXPORT_MAX_ROWS", 5_000_000, 1, int)
# What a person's files may take together until they expire.
TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON = env.number(
    "TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON", 10_000_000_000, 1, int, most=10**15
)
TEAMDESK_PURGE_GRACE = timedelta(hours=1)  # a download that started in time may end
if TEAMDESK_RENEWAL_SECONDS * 2 > TEAMDESK_LEASE_SECONDS:
    raise ImproperlyConfigured(
        "TEAMDESK_RENEWAL_SECONDS must be at most half of TEAMDESK_LEASE_SECONDS, "
        "or one late renewal costs a live task its lease."
    )

# --- Redis and Celery: they only carry -----------------------------------------------------------

REDIS_URL = env.redis(env.required("REDIS_URL", DEBUG and _embedded("redis_url")))
CELERY_BROKER_URL = env.broker(REDIS_URL)
# The ledger records results; Celery keeps none.
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
# Early acknowledgement: a message dies with its worker and the ledger sends it again. With late
# acknowledgement a Celery 5.7 worker exits when Redis is killed while it holds a message.
CELERY_TASK_ACKS_LATE = False
# Take a message only when a process is free to run it: a killed worker strands none, a message
# waits in the list where another worker can take it.
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# The two queues; the dispatcher names one at every publish. Exports never hold up reminders.
CELERY_TASK_DEFAULT_QUEUE = "short"
CELERY_TASK_CREATE_MISSING_QUEUES = True
# One failed publish is the round's answer; the next round is the retry. Options given per publish
# would change later publishes of the process, so they are set here, once. Without socket timeouts
# a peer that accepts and never answers would hang a publish for ever.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "max_retries": 0,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
}
# A worker outlives Redis: it tries again for ever, also at start.
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# On SIGTERM (with REMAP_SIGTERM=SIGQUIT, which our launchers set) running tasks get this long;
# then their processes are ended and hand their leases back.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = env.number("TEAMDESK_SHUTDOWN_SECONDS", 10, 0)
# Celery would close the database connection before and after every task: a new one costs more than
# all that a claim asks. The worker looks after its connection itself (tasks/worker.py).
CELERY_DB_REUSE_MAX = 1_000_000_000
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_IMPORTS = ["tasks.worker"]
# Beat publishes nothing: its scheduler runs the dispatcher's round in its own process, because a
# tick sent as a message would need the very Redis whose absence it must survive.
CELERY_BEAT_SCHEDULER = "tasks.beat:RoundScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = TEAMDESK_ROUND_SECONDS
