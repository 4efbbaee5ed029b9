#!/usr/bin/env python
"""Django's command line for TeamDesk."""

import os
import sys


def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, OperationalError) as error:
        text = str(error) if isinstance(error, ImproperlyConfigured) else _silence(error)
        if not text or "--traceback" in sys.argv:
            raise
        sys.exit(f"manage.py: {text}")


def _silence(error) -> str:
    """That the database does not answer; empty where it did, and said what it refuses."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state and not state.startswith(("08", "57P")):  # lost connections, a server that stops
        return ""
    if not os.environ.get("DATABASE_URL"):
        return "The database does not answer; is bin/up running?"
    reason = str(error).partition("\n")[0]
    return f"The database that DATABASE_URL names does not answer: {reason}"


if __name__ == "__main__":
    main()
