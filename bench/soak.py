#!/usr/bin/env python
"""A soak that kills: a whole TeamDesk under steady load while a monkey kills, freezes and restarts
its processes and services. At the end every effect is compared with what was accepted.

    bench/soak.py --minutes 10 --seed 7 [--json FILE]

Exit status 1 means that a promise was broken: what and which task is printed, and logs and journal
are kept. The same seed gives the same load and the same order of actions, not the same moments.

A slow machine breaks nothing: what a recovery may take is the lease, two rounds and a start-up, the
latter two as measured in this very run; and the end is waited for as long as anything still ends.
All kinds get fifty attempts a second apart (bench/soaking/apps.py): kills alone fail no task.
"""

import argparse
import contextlib
import logging
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measuring import Book
from bench.processes import leave_cleanly
from bench.soaking.mails import MailServer
from bench.soaking.stage import LEASE_SECONDS, Stage


def main() -> int:
    options = _options()
    leave_cleanly()
    print(f"seed {options.seed}, {options.minutes:g} minutes", flush=True)
    mails = MailServer(f"mails-{options.seed}")
    stage, breaches = Stage(mails.port), ["it did not come to an end"]
    try:
        mails.start()
        stage.open()
        import django

        django.setup()
        logging.basicConfig(filename=stage.logs / "soak.log", force=True)  # not between the figures
        figures, breaches = _soak(options, stage, mails)
    finally:
        keeps = bool(breaches) or options.keep
        stage.close(keep_logs=keeps)
        mails.stop()
        if keeps:
            print(f"Logs and journal are kept in {stage.logs}", flush=True)
    for name, value in figures.items():
        print(f"{name:>32}  {value}")
    for breach in breaches:
        print(f"BREACH {breach}")
    print("broken" if breaches else "lost 0, doubled 0, stuck 0")
    if options.json:
        book = Book()
        for name, value in figures.items():  # seconds, the others are counts
            book.add("soak", name, "s" if isinstance(value, float) else "", value)
        book.write(options.json)
    return 1 if breaches else 0


def _soak(options, stage: Stage, mails: MailServer) -> tuple[dict, list[str]]:
    """Load and monkey for the time given; then heal, let it finish, judge. Returns the figures and
    what was broken."""
    from django.db import connection

    from bench.soaking import cast, kinds, ledger
    from bench.soaking.exports import ExportLoad
    from bench.soaking.monkey import Monkey
    from bench.soaking.orders import OrderLoad
    from bench.soaking.tickets import TicketLoad

    kinds.make_tables()
    company, seed = cast.set_up(), options.seed
    tickets = TicketLoad(f"tickets-{seed}", stage.address, company, options.pause)
    exports = ExportLoad(f"exports-{seed}", stage.address, company, tickets, options.pause * 2)
    orders = OrderLoad(f"orders-{seed}", options.pause)
    loads = {"tickets": tickets, "exports": exports, "orders": orders}
    monkey = Monkey(seed, stage, options.monkey_pause, options.only)
    watch = ledger.Watch()

    connection.close()  # it would not outlive the monkey
    died: list[str] = []
    threading.excepthook = lambda end: died.append(f"{end.thread.name} died: {end.exc_value!r}")
    with running(watch.run):
        with running(*(load.run for load in loads.values())):
            with running(monkey.run):
                time.sleep(options.minutes * 60)
            monkey.heal()
        began = time.monotonic()
        allowed = LEASE_SECONDS + watch.two_rounds + stage.start_up_seconds
        breaches = died + ledger.wait_for_the_end(allowed + ledger.PATIENCE_SECONDS)
        finishing = time.monotonic() - began
    breaches += ledger.breaches()
    for each in [*loads.values(), mails]:
        breaches += each.breaches()
    recoveries = ledger.recoveries(monkey.actions, stage, watch)
    breaches += [
        f"slow: {each.attempt} was released {each.seconds:.1f} s after {each.cause}"
        for each in recoveries
        if each.seconds > allowed
    ]
    figures = {
        "monkey's actions": len(monkey.actions),
        **{f"… {name}": count for name, count in sorted(monkey.counts.items())},
        "ends of processes and services": sum(member.ends for member in stage.members),
        **{f"accepted: {name}": load.accepted for name, load in loads.items()},
        **{f"answers lost: {name}": load.unknown for name, load in loads.items()},
        "downloads compared": exports.downloads,
        "mails received": len(mails.received),
        "… of them repeated": mails.repeated,
        **ledger.figures(),
        "executions that lost their lease": stage.lines_with("was taken from execution"),
        "recoveries": len(recoveries),
        "… without a cause of ours": sum(each.cause is None for each in recoveries),
        "longest recovery": longest(each.seconds for each in recoveries),
        "… with other outages": longest(each.gross_seconds for each in recoveries),
        "allowed for a recovery": round(allowed, 1),
        "longest round": round(watch.longest_round, 1),
        "longest start-up": round(stage.start_up_seconds, 1),
        "time to finish after healing": round(finishing, 1),
    }
    if breaches or options.keep:
        _keep_journal(stage, monkey, loads, breaches)
        ledger.keep(stage.logs)
    return figures, breaches


@contextlib.contextmanager
def running(*works):
    """Each in a thread of its own, until the end of the block."""
    closing = threading.Event()
    threads = [
        threading.Thread(target=work, args=[closing], name=work.__qualname__) for work in works
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        closing.set()
        for thread in threads:
            thread.join()


def longest(seconds) -> float:
    return round(max(seconds, default=0.0), 1)


def _keep_journal(stage: Stage, monkey, loads: dict, breaches: list[str]) -> None:
    """Beside the logs, for whoever looks into a breach."""
    with (stage.logs / "journal.txt").open("w") as file:
        for line in breaches:
            file.write(f"BREACH {line}\n")
        for action in monkey.actions:
            file.write(f"{time.strftime('%H:%M:%S', time.gmtime(action.at))} {action}\n")
        for name in ("stories", "requests", "orders"):
            for load in loads.values():
                for entry in getattr(load, name, []):
                    file.write(f"{entry}\n")


def _options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1.5, help="of load and mischief")
    parser.add_argument("--seed", type=int, default=1, help="of the load and the monkey")
    parser.add_argument("--keep", action="store_true", help="logs, journal and ledger in any case")
    parser.add_argument("--only", nargs="+", metavar="ACTION", help="of the monkey's, see its PACK")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument(
        "--pause", type=float, default=0.35, help="seconds between a load's actions"
    )
    parser.add_argument(
        "--monkey-pause", type=float, default=3.0, help="seconds between its actions"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
