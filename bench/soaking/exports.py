"""Exports that people ask for, cancel, run again and download, all through the web; their check."""

import csv
import io
import random
import threading
from collections import Counter
from dataclasses import dataclass, field

import requests

from bench.soaking.cast import PASSWORD, Cast
from bench.soaking.client import Answer, Client
from bench.soaking.tickets import TicketLoad
from exports.models import Export, ExportChunk
from tasks.models import BackgroundTask, TaskStatus
from tickets.models import Notification, Ticket

UNDER_WAY = 5  # exports at a time


@dataclass
class Request:
    """An export as the person who asked for it knows it."""

    pk: int
    of_archive: bool
    opened_before: set[int] = field(default_factory=set)  # tickets accepted before it was asked for
    run: int = 0
    is_cancelled: bool = False
    is_doubtful: bool = False  # a later verb's answer was lost
    is_over: bool = False  # completed, or of no more interest


class ExportLoad:
    def __init__(self, seed: str, address: str, cast: Cast, tickets: TicketLoad, pause: float):
        self.random = random.Random(seed)
        self.cast = cast
        self.tickets = tickets
        self.pause = pause
        self.client = Client(address, "fred", PASSWORD)
        self.requests: list[Request] = []
        self.accepted = self.unanswered = self.downloads = 0
        self.complaints: list[str] = []

    @property
    def unknown(self) -> int:
        return self.unanswered + sum(request.is_doubtful for request in self.requests)

    def run(self, closing: threading.Event) -> None:
        self.client.log_in(closing)
        while not closing.wait(self.random.uniform(0.5, 1.5) * self.pause):
            live = [each for each in self.requests if not (each.is_over or each.is_doubtful)]
            if len(live) < UNDER_WAY and self.random.random() < 0.6:
                self._ask()
            elif live:
                request = self.random.choice(live)
                choice = self.random.random()
                if request.is_cancelled:
                    self._act(request, "retry")
                elif choice < 0.3:
                    self._act(request, "cancel")
                else:
                    self._look(request)

    def _ask(self) -> None:
        of_archive = self.random.random() < 0.6
        opened = {story.pk for story in list(self.tickets.stories)} - {0}
        team = self.cast.archive if of_archive else self.cast.desk
        columns = {} if of_archive else {"columns": ["id", "subject"]}
        answer, body = self.client.order_json("/exports/new/", team=team.pk, **columns)
        if answer == Answer.ACCEPTED:
            self.accepted += 1
            self.requests.append(Request(body["id"], of_archive, opened))
        elif answer == Answer.UNKNOWN:
            self.unanswered += 1
        else:
            self.complaints.append(f"an export was refused: {body}")

    def _act(self, request: Request, verb: str) -> None:
        answer, body = self.client.order_json(f"/exports/{request.pk}/{verb}/")
        if answer == Answer.UNKNOWN:
            request.is_doubtful = True
        elif answer == Answer.REFUSED:
            self.complaints.append(f"{verb} of export {request.pk} was refused: {body}")
        else:
            self.accepted += 1
            cancelled = body["status"] == TaskStatus.CANCELLED
            if verb == "cancel":
                request.is_cancelled = cancelled
            elif cancelled:
                self.complaints.append(f"export {request.pk}: {TaskStatus.CANCELLED} after a retry")
            else:
                request.is_cancelled = False
                request.run += 1

    def _look(self, request: Request) -> None:
        try:
            answer = self.client.see(
                f"/exports/{request.pk}/", headers={"Accept": "application/json"}
            )
            if answer.status_code != 200 or answer.json()["status"] != TaskStatus.COMPLETED:
                return
            file = self.client.see(f"/exports/{request.pk}/download/")
        except (requests.RequestException, ValueError):
            return
        if file.status_code == 200:
            request.is_over = True
            self.downloads += 1
            found = set(_ids(file.content))
            wanted = request.opened_before if not request.of_archive else set()
            if missing := wanted - found:
                self.complaints.append(f"download of export {request.pk} lacks {sorted(missing)}")

    # The check

    def breaches(self) -> list[str]:
        found = list(self.complaints)
        known = {request.pk: request for request in self.requests}
        exports = Export.objects.of(self.cast.fred).select_related("task").in_bulk()
        for pk in known.keys() - exports.keys():
            found.append(f"lost: the accepted export {pk}")
        if len(exports.keys() - known.keys()) > self.unanswered:
            found.append(f"nobody asked for exports {sorted(exports.keys() - known.keys())}")
        for pk, export in exports.items():
            request = known.get(pk)
            found += [f"export {pk}: {text}" for text in self._judge(export, request)]
            if request and not request.is_doubtful:
                found += [f"export {pk}: {text}" for text in _judge_state(request, export.task)]
        return found

    def _judge(self, export: Export, request: Request | None):
        """The result is whole, of one execution, and told once."""
        task = export.task
        is_done = task.status == TaskStatus.COMPLETED
        told = Counter(
            Notification.objects.filter(
                user=self.cast.fred, cause__startswith=f"export:{task.pk}:"
            ).values_list("cause", flat=True)
        )
        if told != ({f"export:{task.pk}:{task.run}": 1} if is_done else {}):
            yield f"{task.status} in run {task.run}, but told {dict(told)}"
        stored = set(export.chunks.values_list("execution_id", flat=True))
        if stored != ({export.execution_id} if is_done else set()):
            yield f"{task.status}, with chunks of the executions {stored}"
        if not is_done:
            return
        try:
            content = b"".join(export.content())
        except ExportChunk.DoesNotExist:
            yield "lost: chunks of the result are missing"
            return
        ids = _ids(content)
        if len(content) != export.size or len(ids) != export.rows or len(set(ids)) != len(ids):
            yield f"{len(content)} bytes, {len(ids)} rows; said were {export.size}, {export.rows}"
        team = export.team_ids[0] if export.team_ids else None
        if team == self.cast.archive.pk and len(ids) != self.cast.archived:
            yield f"{len(ids)} rows of the archive's {self.cast.archived}"
        born = Ticket.objects.filter(team=team, created_at__lt=task.finished_at)
        if strangers := set(ids) - set(born.values_list("pk", flat=True)):
            yield f"rows that did not exist: {sorted(strangers)}"
        if request and not request.of_archive and (missing := request.opened_before - set(ids)):
            yield f"lost: it lacks {sorted(missing)}, which were opened before it"
        if not task.attempts.filter(outcome="completed", execution_id=export.execution_id).exists():
            yield "its result is not that of the attempt that completed"


def _judge_state(request: Request, task: BackgroundTask):
    wanted = TaskStatus.CANCELLED if request.is_cancelled else TaskStatus.COMPLETED
    if (task.run, task.status) != (request.run, wanted):
        yield f"{task.status} in run {task.run}, not {wanted} in run {request.run}"


def _ids(content: bytes) -> list[int]:
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    next(rows)
    return [int(row[0]) for row in rows]
