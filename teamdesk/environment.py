"""Reads settings from the environment, or from a file ``.env``, and refuses nonsense at start.

Every function raises ImproperlyConfigured with one sentence that names the variable. Values that
may hold a password are not repeated in it.
"""

import logging
import warnings
import zoneinfo
from collections.abc import Callable
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

_env = environ.Env()

LARGEST = 10**9  # a number beyond is a mistake, and would overflow somewhere later

# A silent host must not hang a page, a probe or beat, and PostgreSQL's own timeouts end with it:
# who waits for an answer finds out within half a minute that nobody is there.
_PATIENCE = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds
}


def read_file(path: Path) -> None:
    """Variables that are set already win over the file's."""
    _env.read_env(path)


def text(name: str, default: str = "") -> str:
    return _env.str(name, default)


def listed(name: str, default: list[str]) -> list[str]:
    """Values with commas between them."""
    return _env.list(name, default=default)


def required(name: str, default: Callable[[], str] | None) -> str:
    """``default`` None: there is none, as in production."""
    value = _env.str(name, "")
    if value:
        return value
    if default:
        return default()
    raise ImproperlyConfigured(f"{name} must be set when DEBUG=False; README lists the variables.")


def boolean(name: str, default: bool) -> bool:
    value = _env.str(name, str(default)).strip().lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off", ""}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is not a yes or no; use True or False.")


def number(name: str, default: float, least: float = 0, of: type = float, most: float = LARGEST):
    value = _env.str(name, str(default))
    try:
        found = of(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a number.") from None
    if not found >= least:
        raise ImproperlyConfigured(f"{name}={value!r} must be at least {least}.")
    if found > most:
        raise ImproperlyConfigured(f"{name}={value!r} must be at most {most}.")
    return found


def time_zone(name: str, default: str) -> str:
    value = _env.str(name, default)
    if value not in zoneinfo.available_timezones():
        raise ImproperlyConfigured(f"{name}={value!r} is no time zone like Europe/Berlin.")
    return value


def choice(name: str, default: str, known: list[str]) -> str:
    value = _env.str(name, "") or default
    if value not in known:
        raise ImproperlyConfigured(f"{name}={value!r} is none of {', '.join(known)}.")
    return value


def log_level(name: str, default: str) -> str:
    value = _env.str(name, default).upper()
    if value not in logging.getLevelNamesMapping():
        known = ", ".join(logging.getLevelNamesMapping())
        raise ImproperlyConfigured(f"{name}={value!r} is none of {known}.")
    return value


# Ours in place of Django's: one is bounded in time, the other keeps files that mail programs open.
_MAIL_BACKENDS = {
    f"django.core.mail.backends.{name}.EmailBackend": f"tickets.mail.{ours}.EmailBackend"
    for name, ours in (("smtp", "smtp"), ("filebased", "files"))
}


def email(name: str, default: str) -> dict:
    """Django's ``EMAIL_…`` settings."""
    try:
        found = _env.email_url_config(_env.str(name, "") or default)
    except (ValueError, KeyError, ImproperlyConfigured):
        raise ImproperlyConfigured(
            f"{name} cannot be read; it looks like smtp+tls://user:password@host:587."
        ) from None
    backend = found["EMAIL_BACKEND"]
    return found | {"EMAIL_BACKEND": _MAIL_BACKENDS.get(backend, backend)}


def sender(name: str, default: str) -> str:
    """``TeamDesk <help@example.org>``."""
    value = _env.str(name, "") or default
    local, _at, host = parseaddr(value)[1].rpartition("@")
    if local and host and value.isprintable():
        return value
    raise ImproperlyConfigured(f"{name}={value!r} is no sender like TeamDesk <help@example.org>.")


def web_address(name: str, default: str | None) -> str:
    """``https://help.example.org``. ``default`` None: there is none; empty: it may be unknown."""
    value = _env.str(name, "") or default
    if value == "":
        return value
    if value is None:
        raise ImproperlyConfigured(
            f"{name} must be set where mail is sent (EMAIL_URL), for the links in it; "
            "it looks like https://help.example.org."
        )
    try:
        parts = urlsplit(value)
        _ = parts.port  # raises if it is no number
    except ValueError:
        parts = urlsplit("")
    beyond = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme in {"http", "https"} and parts.hostname and not beyond:
        return value
    raise ImproperlyConfigured(f"{name}={value!r} is no address like https://help.example.org.")


def database(url: str) -> dict:
    """Django's settings of the database at DATABASE_URL."""
    with warnings.catch_warnings(action="ignore"):  # it warns and goes on; we do not go on
        try:
            found = _env.db_url_config(url)
        except ValueError:  # a port that is no number
            found = {}
    if not found.get("ENGINE", "").startswith("django.db.backends."):
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be read; it looks like postgresql://user:password@host:5432/name."
        )
    # A Unix socket's folder travels as ?host=…, the way libpq's own URLs carry it.
    options = found.setdefault("OPTIONS", {})
    found["HOST"] = options.pop("host", found.get("HOST", ""))
    if found["ENGINE"].endswith("postgresql"):
        found["ENGINE"] = "tasks.postgresql"  # the same, with limits to waiting
        for option, value in _PATIENCE.items():
            options.setdefault(option, value)
    return found


def redis(url: str) -> str:
    """The URL itself, if both redis-py and kombu can use it."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is no number
    except ValueError:
        parts = urlsplit("")
    database_number = "" if parts.scheme == "unix" else parts.path.strip("/")
    if parts.scheme in {"redis", "rediss", "unix"} and (database_number or "0").isdecimal():
        return url
    raise ImproperlyConfigured("REDIS_URL cannot be read; it looks like redis://host:6379/0.")


def broker(redis_url: str) -> str:
    """The same for kombu, which spells a Unix socket differently from redis-py."""
    if not redis_url.startswith("unix://"):
        return redis_url
    return redis_url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=")
