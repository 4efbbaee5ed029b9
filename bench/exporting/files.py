"""How fast the file is made, and with how much memory: all arms in every round."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bench.exporting.helpdesk import Helpdesk, Peak
from bench.measuring import Book
from bench.processes import Answering, ArmFailed
from bench.stage import cpu_seconds

OURS, COPY, LIBPQ, CSV = "ours", "raw COPY", "raw COPY by bare libpq", "psycopg and csv"
IMPORT_EXPORT, OPENPYXL = "django-import-export", "openpyxl write-only"
GZIP, JSON_LINES = "ours gzipped", "ours JSON Lines"
_NOBODY = {"due_before": "1990-01-01"}  # filters that select no ticket


@dataclass(frozen=True)
class FileArm:
    """A way to make the file.

    Attributes:
        verb: of ``bench.exporting.peers`` or ``ours``.
        request: what it is asked with.
        warm_up: what it is asked with before, so that all is loaded and connected.
        is_slow: it is not made to write the largest file.
        is_workbook: it is compared with the other makers of XLSX.
    """

    name: str
    verb: str
    request: dict = field(default_factory=dict)
    warm_up: dict = field(default_factory=lambda: {"limit": 100})
    is_slow: bool = False
    is_workbook: bool = False
    is_ours: bool = False


def _ours(name: str, file_format: str, **more) -> FileArm:
    return FileArm(
        name,
        "export",
        request={"file_format": file_format},
        warm_up={"file_format": file_format, "filters": _NOBODY},
        is_ours=True,
        **more,
    )


ARMS = (
    _ours(OURS, "csv"),
    _ours(OURS, "xlsx", is_slow=True, is_workbook=True),
    _ours(GZIP, "csv.gz", is_slow=True),
    _ours(JSON_LINES, "jsonl", is_slow=True),
    FileArm(COPY, "copy"),
    FileArm(LIBPQ, "libpq"),
    FileArm(CSV, "rows_through_csv"),
    FileArm(IMPORT_EXPORT, "import_export", is_slow=True),
    FileArm(OPENPYXL, "openpyxl", is_slow=True, is_workbook=True),
)


def chosen(names: str | None) -> list[FileArm]:
    """Raises SystemExit for a name that no arm has."""
    known = {arm.name for arm in ARMS}
    wanted = set(names.split(",")) if names else known
    if strange := wanted - known:
        raise SystemExit(f"No such arm: {', '.join(sorted(strange))}; there are {', '.join(known)}")
    return [arm for arm in ARMS if arm.name in wanted]


def seconds(tickets: int, is_workbook: bool = False) -> str:
    return f"{tickets:,} tickets as XLSX" if is_workbook else f"{tickets:,} tickets"


def memory(tickets: int, is_workbook: bool = False) -> str:
    return f"memory above idle, {seconds(tickets, is_workbook)}"


def cpu(tickets: int, is_workbook: bool = False) -> str:
    return f"CPU with PostgreSQL, {seconds(tickets, is_workbook)}"


def measure(desk: Helpdesk, arm: FileArm, book: Book) -> None:
    """One file, in a process of its own that has written a small one."""
    desk.clear()
    with desk.process(arm.name) as process:
        request = arm.request
        if arm.verb == "openpyxl":
            request = request | {"file": str(desk.stage.folder / "peer.xlsx")}
            process.ask(arm.verb, **(request | arm.warm_up))
        else:
            process.ask(arm.verb, **arm.warm_up)
        desk.clear()
        before = _cpu_seconds(desk, process)
        with Peak(process.pid) as peak:
            done = process.ask(arm.verb, **request)
        used = _cpu_seconds(desk, process) - before
        if done.get("error"):
            raise ArmFailed(f"{arm.name}: {done['error']}")
        book.add(arm.name, seconds(desk.tickets, arm.is_workbook), "s", done["seconds"])
        book.add(arm.name, cpu(desk.tickets, arm.is_workbook), "s", used)
        book.add(arm.name, memory(desk.tickets, arm.is_workbook), "MB", peak.growth)
        if arm.is_ours:
            _account(desk, arm, book, done, process.ask("read_back", pk=done["pk"]))
        else:
            book.add(arm.name, "lost", "rows", desk.tickets - done["rows"])
            book.add(arm.name, "doubled", "rows", 0)
    desk.clear()


def _account(desk: Helpdesk, arm: FileArm, book: Book, done: dict, found: dict) -> None:
    """The file has every ticket once, and is what the ledger says of it."""
    if (found["rows"], found["bytes"]) != (done["rows"], done["bytes"]) or found["strange"]:
        raise ArmFailed(f"{arm.name}: the ledger says {done}, the file has {found}")
    name = "XLSX" if arm.is_workbook else arm.name
    book.add(name, "bytes a row", "B", done["bytes"] / max(done["rows"], 1))
    book.add(arm.name, "lost", "rows", found["lacks"])
    book.add(arm.name, "doubled", "rows", found["doubled"])


def _cpu_seconds(desk: Helpdesk, process: Answering) -> float:
    return cpu_seconds(process.pid) + desk.stage.cpu_seconds()


def compare(desks: list[Helpdesk], arms: list[FileArm], rounds: int, book: Book, say: Callable):
    for number in range(rounds):
        turn = number % len(arms)
        for desk in desks:
            for arm in arms[turn:] + arms[:turn]:
                if arm.is_slow and desk is desks[-1] and len(desks) > 1:
                    continue
                say(f"round {number + 1} of {rounds}: {arm.name}, {desk.tickets:,} tickets")
                try:
                    measure(desk, arm, book)
                except ArmFailed as failure:  # the other arms' figures are worth having
                    say(str(failure))
                    book.failures.append(arm.name)
