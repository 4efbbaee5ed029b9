#!/usr/bin/env python
"""The ledger beside its peers: speed, cost at rest, memory, and how it bears a large table.

    python bench/ledger.py [--quick] [--json FILE] [--scale]

Starts its own PostgreSQL and Valkey. Exit code 0 whatever the figures are, 1 when an arm lost or
doubled work, 2 when something is missing. ``--help`` names the other options.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

NEEDED = {
    "psutil": "psutil",
    "procrastinate": "procrastinate",
    "django_tasks": "django-tasks",
    "django_tasks_db": "django-tasks-db",
    "django_celery_outbox": "django-celery-outbox",
}
METRICS = ("enqueue", "latency", "drain", "idle", "memory")


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The ledger beside its peers.")
    add = parser.add_argument
    add("--quick", action="store_true", help="two small rounds: does it work? no figures to keep")
    add("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    add("--rounds", type=int, help="default 5, with --quick 2")
    add("--arms", help="names with commas between them; default: all")
    add("--metrics", help=f"of {','.join(METRICS)}; default: all")
    add("--jobs", type=int, help="to drain; default 3,000, with --quick 200")
    add("--scale", action="store_true", help="only: a small ledger beside one of 11 million rows")
    options = parser.parse_args(given)
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.metrics = options.metrics.split(",") if options.metrics else list(METRICS)
    if strange := set(options.metrics) - set(METRICS):
        parser.error(f"no such metric: {', '.join(sorted(strange))}")
    return options


def main(given: list[str]) -> int:
    options = arguments(given)
    missing = [name for module, name in NEEDED.items() if not importlib.util.find_spec(module)]
    if missing and not (options.arms == "ours" or options.scale):
        sys.stderr.write(f"Missing: {', '.join(missing)}. pip install -r bench/requirements.txt\n")
        return 2
    from bench.comparison import compare
    from bench.machine import description
    from bench.report import show
    from bench.running import ArmFailed
    from bench.scale import measure_scale
    from bench.stage import stage
    from teamdesk.embedded import ServiceError

    try:
        with stage() as servers:
            sys.stdout.write("\n".join(description(servers)) + "\n")
            sys.stdout.flush()
            book = measure_scale(servers, options) if options.scale else compare(servers, options)
    except (ArmFailed, ServiceError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    show(book)
    if options.json:
        book.write(options.json)
    if book.total("lost") or book.total("doubled"):
        return 1
    return 2 if book.failures else 0


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # instead of bench/ itself
    from bench.processes import leave_cleanly

    leave_cleanly()
    sys.exit(main(sys.argv[1:]))
