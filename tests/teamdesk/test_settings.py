"""Settings: runs with nothing configured, fails loudly when misconfigured."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCTION = {
    "DEBUG": "False",
    "SECRET_KEY": "s",
    "DATABASE_URL": "postgresql://user:secret@db:5432/name",
    "REDIS_URL": "redis://redis:6379/0",
}


def settings_say(expression: str, **environment: str) -> subprocess.CompletedProcess:
    """Reads the settings in a process of its own, in exactly this environment."""
    return subprocess.run(
        [sys.executable, "-c", f"from teamdesk import settings as s; print(({expression}))"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
    )


def test_it_runs_in_development_with_nothing_set(tmp_path):
    told = settings_say("s.DEBUG, s.DATABASES['default']['HOST'], s.REDIS_URL")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("(True, ")
    assert "valkey.sock" in told.stdout


def test_the_embedded_services_follow_the_var_folder(tmp_path):
    told = settings_say("s.DATABASES['default']['HOST']", TEAMDESK_VAR="/tmp/td")
    assert told.stdout.strip() == "/tmp/td/run"


def test_it_accepts_a_production_environment():
    told = settings_say(
        "s.DATABASES['default']['HOST'], s.CELERY_BROKER_URL, s.SESSION_COOKIE_SECURE", **PRODUCTION
    )
    assert told.stdout.strip() == "('db', 'redis://redis:6379/0', True)", told.stderr


def test_a_database_host_that_falls_silent_is_noticed():
    options = "s.DATABASES['default']['OPTIONS']"
    names = ("connect_timeout", "keepalives_idle", "tcp_user_timeout")
    expression = f"[{options}[name] > 0 for name in {names}]"
    assert settings_say(expression, **PRODUCTION).stdout.strip() == "[True, True, True]"
    url = PRODUCTION["DATABASE_URL"] + "?connect_timeout=1"
    told = settings_say(f"{options}['connect_timeout']", **PRODUCTION | {"DATABASE_URL": url})
    assert told.stdout.strip() in ("1", "'1'")


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "REDIS_URL"])
@pytest.mark.parametrize("value", [None, ""])
def test_production_needs_what_it_cannot_guess(name, value):
    environment = PRODUCTION | {name: value}
    told = settings_say("'started'", **{k: v for k, v in environment.items() if v is not None})
    assert told.returncode != 0
    last = told.stderr.strip().splitlines()[-1]
    assert f"{name} must be set when DEBUG=False" in last


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("TEAMDESK_BATCH_SIZE", "many", "is not a number"),
        ("TEAMDESK_BATCH_SIZE", "0", "must be at least 1"),
        ("TEAMDESK_ROUND_SECONDS", "-3", "must be at least"),
        ("TEAMDESK_ROUND_SECONDS", "nan", "must be at least"),
        ("TEAMDESK_LEASE_SECONDS", "inf", "must be at most"),
        ("TEAMDESK_RENEWAL_SECONDS", "100", "at most half of TEAMDESK_LEASE_SECONDS"),
        ("DEBUG", "perhaps", "is not a yes or no"),
        ("DATABASE_URL", "nonsense://me:hush@db/name", "cannot be read"),
        ("DATABASE_URL", "postgresql//me:hush@db/name", "cannot be read"),
        ("DATABASE_URL", "postgresql://me:hush@db:port/name", "cannot be read"),
        ("REDIS_URL", "me:hush@localhost:6379", "cannot be read"),
        ("REDIS_URL", "redis://me:hush@localhost:port/0", "cannot be read"),
        ("REDIS_URL", "redis://me:hush@localhost/first", "cannot be read"),
        ("TEAMDESK_BATCH_SIZE", "99999999999999999999", "must be at most"),
        ("TEAMDESK_EXPORT_TTL_HOURS", "1e300", "must be at most"),
        ("TIME_ZONE", "Mars/Base", "is no time zone"),
        ("LOG_LEVEL", "loud", "is none of"),
        ("EMAIL_URL", "nonsense", "cannot be read"),
        ("EMAIL_URL", "smtp+tls://me:hush@host:port", "cannot be read"),
        ("DEFAULT_FROM_EMAIL", "nobody", "is no sender"),
        ("TEAMDESK_URL", "help.example.org", "is no address"),
        ("TEAMDESK_URL", "https://help.example.org:port", "is no address"),
        ("TEAMDESK_URL", "https://help.example.org/desk/", "is no address"),
    ],
)
def test_a_bad_value_is_named_at_start(name, value, complaint):
    told = settings_say("'started'", **{name: value})
    assert told.returncode != 0
    last = told.stderr.strip().splitlines()[-1]
    assert name in last
    assert complaint in last
    assert "hush" not in told.stderr.splitlines()[-1]


def test_development_keeps_its_mail_in_files():
    told = settings_say("s.EMAIL_BACKEND, s.EMAIL_FILE_PATH", TEAMDESK_VAR="/tmp/t d")
    assert told.stdout.strip() == "('tickets.mail.files.EmailBackend', '/tmp/t d/mail')"


def test_production_sends_no_mail_until_it_is_told_how():
    assert settings_say("s.TEAMDESK_MAIL", **PRODUCTION).stdout.strip() == "False"
    mail = PRODUCTION | {"EMAIL_URL": "smtp+tls://me:hush@host:587"}
    told = settings_say("s.TEAMDESK_MAIL", **mail)
    assert "TEAMDESK_URL must be set" in told.stderr.strip().splitlines()[-1]
    told = settings_say(
        "s.TEAMDESK_MAIL, s.EMAIL_BACKEND", **mail, TEAMDESK_URL="https://help.example.org"
    )
    assert told.stdout.strip() == "(True, 'tickets.mail.smtp.EmailBackend')"


def test_another_database_is_refused_by_a_check():
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DATABASE_URL": "sqlite:///db.sqlite3"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "TeamDesk runs on PostgreSQL only" in done.stderr
