"""On what and with what a benchmark ran, for its first lines."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.stage import POSTGRES, VALKEY, Stage

PACKAGES = (
    "Django",
    "psycopg",
    "celery",
    "kombu",
    "redis",
    "procrastinate",
    "django-tasks-db",
    "django-celery-outbox",
    "django-import-export",
    "openpyxl",
)


def description(stage: Stage) -> list[str]:
    """Lines of Markdown."""
    with stage.postgres.connect() as connection:
        (postgres,) = connection.execute("SHOW server_version").fetchone()
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    settings = ", ".join(f"{key}={value}" for key, value in (POSTGRES | VALKEY).items())
    return [
        f"* {os.cpu_count()} × {_processor()}, {_memory()} GB, Linux {platform.release()}; "
        f"load average at the start {load}",
        f"* PostgreSQL {postgres}, {_valkey(stage)}: {settings}",
        f"* Python {platform.python_version()}, {', '.join(filter(None, map(_version, PACKAGES)))}",
    ]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3)


def _valkey(stage: Stage) -> str:
    with stage.valkey_client() as client:
        info = client.info("server")
    return f"Valkey {info.get('valkey_version', info['redis_version'])}"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
