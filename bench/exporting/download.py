"""How fast a stored file comes through the web, and what the web needs for it."""

import hashlib
import time

from bench.exporting.helpdesk import Helpdesk, Peak
from bench.exporting.web import Person, Web
from bench.measuring import Book
from bench.processes import ArmFailed

SPEED, MEMORY = "download", "web memory above its level, download"
ARM = "ours"


def measure(desk: Helpdesk, rounds: int, book: Book) -> None:
    """The same file again and again, by a client that throws it away."""
    desk.clear()
    with desk.process("export") as process:
        session = process.ask("lead_session")
        small = process.ask("export", filters={"due_before": "1990-01-01"})
        file = process.ask("export")
        wanted = process.ask("digest", pk=file["pk"])
    path = f"/exports/{file['pk']}/download/"
    with Web.of(desk) as web:
        person = Person(web.port, session)
        for _ in range(20):  # both processes have served a page and a file before
            Person(web.port, session).get("/exports/")
            Person(web.port, session).download(f"/exports/{small['pk']}/download/")
        for _ in range(rounds):
            with Peak(*web.pids) as peak:
                started = time.perf_counter()
                size = person.download(path)
                seconds = time.perf_counter() - started
            book.add(ARM, SPEED, "MB/s", size / 1e6 / seconds)
            book.add(ARM, MEMORY, "MB", peak.growth)
            book.add(ARM, "lost", "bytes", file["bytes"] - size)
            book.add(ARM, "doubled", "bytes", 0)
        found = hashlib.sha256()
        person.download(path, found.update)
        if found.hexdigest() != wanted:
            raise ArmFailed("The file that was downloaded is not the one that is stored.")
    desk.clear()
