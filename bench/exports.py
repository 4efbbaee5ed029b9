#!/usr/bin/env python
"""Exports beside raw COPY, Python's csv, django-import-export and openpyxl; the download; the wait
for "accepted".

    python bench/exports.py [--quick] [--json FILE] [--parts files,download,requests]

Starts its own PostgreSQL and Valkey. Exit code 0 whatever the figures are, 1 when a file lacked a
row or had one twice, 2 when something is missing. ``--help`` names the other options.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

NEEDED = {
    "psutil": "psutil",
    "import_export": "django-import-export",
    "openpyxl": "openpyxl",
}
PARTS = ("files", "download", "requests")
SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (200, 1_000, 3_000)


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Exports beside their peers.")
    add = parser.add_argument
    add("--quick", action="store_true", help="two small rounds: does it work? no figures to keep")
    add("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    add("--rounds", type=int, help="default 5, with --quick 2")
    add("--sizes", help="tickets, with commas between them; default: 10000,100000,1000000")
    add("--arms", help="names with commas between them; default: all")
    add("--parts", default=",".join(PARTS), help=f"of {','.join(PARTS)}; default: all")
    options = parser.parse_args(given)
    options.rounds = options.rounds or (2 if options.quick else 5)
    sizes = [int(size) for size in options.sizes.split(",")] if options.sizes else None
    options.sizes = sorted(sizes or (QUICK_SIZES if options.quick else SIZES))
    options.parts = options.parts.split(",")
    if strange := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(strange))}")
    return options


def main(given: list[str]) -> int:
    options = arguments(given)
    missing = [name for module, name in NEEDED.items() if not importlib.util.find_spec(module)]
    if options.arms:  # a peer's package begins its arm's name
        arms = options.arms.split(",")
        missing = [name for name in missing if any(arm.startswith(name) for arm in arms)]
    if missing:
        sys.stderr.write(f"Missing: {', '.join(missing)}. pip install -r bench/requirements.txt\n")
        return 2
    from bench.exporting.report import show
    from bench.machine import description
    from bench.measuring import Book
    from bench.processes import ArmFailed
    from bench.stage import stage
    from teamdesk.embedded import ServiceError

    book = Book(tell=say)
    try:
        with stage() as servers:
            sys.stdout.write("\n".join(description(servers)) + "\n")
            sys.stdout.flush()
            measure(servers, options, book)
    except (ArmFailed, ServiceError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:  # what was measured so far is worth showing
        book.failures.append("interrupted")
    show(book, options.sizes)
    if options.json:
        book.write(options.json)
    if book.total("lost") or book.total("doubled"):
        return 1
    return 2 if book.failures else 0


def measure(stage, options: argparse.Namespace, book) -> None:
    from bench.exporting import download, files, requests
    from bench.exporting.helpdesk import Helpdesk

    desks = [Helpdesk(stage, size, number) for number, size in enumerate(options.sizes)]
    for desk in desks:
        say(f"{desk.tickets:,} tickets")
        desk.open()
    if "files" in options.parts:
        files.compare(desks, files.chosen(options.arms), options.rounds, book, say)
    if "download" in options.parts:
        say("download")
        download.measure(desks[-1], options.rounds, book)
    if "requests" in options.parts:
        say("requests")
        middle = desks[len(desks) // 2]
        requests.measure(middle, options.rounds, 5 if options.quick else 100, book)


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # instead of bench/ itself
    from bench.processes import leave_cleanly

    leave_cleanly()
    sys.exit(main(sys.argv[1:]))
