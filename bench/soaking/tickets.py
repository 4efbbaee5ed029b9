"""Due dates that are set, moved, cleared and closed away, also after they fired; and their check.

Each ticket's history says when each revision of its reminder held. A revision that still holds was
reminded once; one that was overtaken was reminded before that or never.
"""

import itertools
import random
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bench.soaking.cast import PASSWORD, Cast
from bench.soaking.client import Answer, Client
from tasks.models import BackgroundTask, TaskStatus
from tickets.models import Notification, Ticket

KEPT = 60  # tickets that are still changed; older ones rest


@dataclass
class Story:
    """A ticket as its only author knows it. ``changes`` are those accepted, in order."""

    subject: str
    opened_due: datetime | None
    people: set[int]
    due: datetime | None = None
    pk: int = 0  # 0: the answer was lost
    is_open: bool = True
    changes: list[tuple[str, object]] = field(default_factory=list)
    doubtful: tuple[str, object] | None = None  # the last change, whose answer was lost


class TicketLoad:
    """One person who opens tickets and changes them, all through the web."""

    def __init__(self, seed: str, address: str, cast: Cast, pause: float):
        self.random = random.Random(seed)
        self.seed = seed
        self.cast = cast
        self.pause = pause
        self.client = Client(address, "dora", PASSWORD)
        self.numbers = itertools.count()
        self.stories: list[Story] = []
        self.accepted = self.unknown = 0
        self.refusals: list[str] = []

    def run(self, closing: threading.Event) -> None:
        self.client.log_in(closing)
        while not closing.wait(self.random.uniform(0.5, 1.5) * self.pause):
            known = [story for story in self.stories[-KEPT:] if story.pk and not story.doubtful]
            if not known or self.random.random() < 0.5:
                self._open()
            else:
                self._change(self.random.choice(known))

    def _due(self, earliest: float) -> datetime:
        """Different from every other: microseconds are random."""
        return datetime.now(UTC) + timedelta(seconds=self.random.uniform(earliest, 12))

    def _open(self) -> None:
        due = self._due(-2) if self.random.random() < 0.9 else None
        people = {self.cast.dora.pk}
        fields = {"due_at": due.isoformat() if due else ""}
        if self.random.random() < 0.6:
            people.add(self.cast.emil.pk)
            fields["assignee"] = self.cast.emil.pk
        story = Story(f"{self.seed}-{next(self.numbers)}", due, people, due)
        self.stories.append(story)
        answer, pk = self.client.order(
            "/tickets/new/",
            r"/tickets/(\d+)/",
            team=self.cast.desk.pk,
            subject=story.subject,
            priority="normal",
            **fields,
        )
        self._count(answer, pk)
        if answer == Answer.ACCEPTED:
            story.pk = int(pk)
        elif answer == Answer.REFUSED:
            self.stories.remove(story)

    def _change(self, story: Story) -> None:
        if not story.is_open:
            change = ("status", "open")
        elif self.random.random() < 0.15:
            change = ("status", self.random.choice(["resolved", "closed"]))
        elif story.due and self.random.random() < 0.1:
            change = ("due_at", None)
        else:
            change = ("due_at", self._due(-2))
        name, value = change
        posted = value.isoformat() if isinstance(value, datetime) else value or ""
        verb = "due" if name == "due_at" else name
        answer, text = self.client.order(
            f"/tickets/{story.pk}/{verb}/", rf"(/tickets/{story.pk}/)", **{name: posted}
        )
        self._count(answer, text)
        if answer == Answer.UNKNOWN:
            story.doubtful = change
        elif answer == Answer.ACCEPTED:
            story.changes.append(change)
            if name == "due_at":
                story.due = value
            else:
                story.is_open = value == "open"

    def _count(self, answer: Answer, text: str) -> None:
        self.accepted += answer == Answer.ACCEPTED
        self.unknown += answer == Answer.UNKNOWN
        if answer == Answer.REFUSED:
            self.refusals.append(text)

    # The check

    def breaches(self) -> list[str]:
        found = [f"refused without a reason: {text}" for text in self.refusals]
        for story in self.stories:
            tickets = list(Ticket.objects.filter(subject=story.subject))
            if len(tickets) > 1:
                found.append(f"doubled: {len(tickets)} tickets {story.subject}")
            elif not tickets and story.pk:
                found.append(f"lost: the accepted ticket {story.pk} {story.subject}")
            found += [f"{ticket}: {text}" for ticket in tickets for text in _judge(ticket, story)]
        return found


@dataclass
class Revision:
    """One value of a ticket's ``reminder_revision``: from when to when it held. ``due`` is None
    where it only invalidated the one before."""

    number: int
    due: datetime | None
    until: datetime | None = None


def _judge(ticket: Ticket, story: Story):
    """Yields what is wrong with this ticket."""
    yield from _compared_with_what_was_accepted(ticket, story)
    if _first_due(ticket) != story.opened_due:
        yield f"opened with {_first_due(ticket)}, not {story.opened_due}"
    revisions = _revisions(ticket, story.opened_due)
    tasks = {}
    for task in ticket.background_tasks.filter(kind="REMINDER"):
        if task.reminder_revision in tasks:
            yield f"doubled: two reminders of revision {task.reminder_revision}"
        tasks[task.reminder_revision] = task
    scheduled = {each.number: each for each in revisions if each.due}
    for number in tasks.keys() - scheduled.keys():
        yield f"task {tasks[number].pk}: nobody asked for a reminder of revision {number}"
    for number, revision in scheduled.items():
        task = tasks.get(number)
        # A failed attempt moves run_at up the ladder.
        if task is None or (task.run_at != revision.due and task.attempt == 0):
            yield f"lost: no reminder of revision {number} for {revision.due}"
            continue
        for text in _judge_reminder(ticket, task, revision, story.people):
            yield f"task {task.job_id} (revision {number}): {text}"
    if ticket.reminder_revision != (revisions[-1].number if revisions else 0):
        yield f"its revision is {ticket.reminder_revision}, its history says {revisions[-1:]}"


def _compared_with_what_was_accepted(ticket: Ticket, story: Story):
    changed = [
        (event.field, event.new_value)
        for event in ticket.events.filter(kind="changed").order_by("id")
    ]
    wanted = [
        (name, value.isoformat() if isinstance(value, datetime) else value)
        for name, value in [*story.changes, *([story.doubtful] if story.doubtful else [])]
    ]
    if changed not in (wanted, wanted[: len(story.changes)]):
        yield f"lost or doubled: its history has {changed}; accepted was {wanted}"


def _first_due(ticket: Ticket) -> datetime | None:
    """The due date that it was opened with: the first change of it says."""
    first = ticket.events.filter(kind="changed", field="due_at").order_by("id").first()
    if first is None:
        return ticket.due_at
    return datetime.fromisoformat(first.old_value) if first.old_value else None


def _revisions(ticket: Ticket, due: datetime | None) -> list[Revision]:
    """What its history says about its reminders."""
    is_open, revisions = True, []

    def next_one(value, at):
        if revisions:
            revisions[-1].until = at
        revisions.append(Revision(len(revisions) + 1, value))

    if due:
        next_one(due, None)
    for event in ticket.events.filter(kind="changed", field__in=["status", "due_at"]).order_by(
        "id"
    ):
        is_new = event.field == "due_at"
        if is_new:
            due = datetime.fromisoformat(event.new_value) if event.new_value else None
        else:
            is_open = event.new_value == "open"
        holds = is_open and due and (is_new or due > event.at)
        next_one(due if holds else None, event.at)
    return revisions


def _judge_reminder(ticket: Ticket, task: BackgroundTask, revision: Revision, people: set[int]):
    times = list(
        ticket.events.filter(kind="reminded", new_value=revision.number).values_list(
            "at", flat=True
        )
    )
    cause = f"reminder:{ticket.pk}:{revision.number}"
    told = sorted(Notification.objects.filter(cause=cause).values_list("user_id", flat=True))
    if len(times) > 1:
        yield f"doubled: reminded {len(times)} times"
    if told != (sorted(people) if times else []):
        yield f"{told} were told, {sorted(people)} should be, {len(times)} times"
    for at in times:
        if at < revision.due:
            yield f"reminded at {at}, before {revision.due}"
        if revision.until and at >= revision.until:
            yield f"reminded at {at}, although overtaken at {revision.until}"
    if times and task.status != TaskStatus.COMPLETED:
        yield f"reminded, but {task.status}"
    if not times and revision.until is None:
        yield f"lost: never reminded, the task is {task.status}"
    # Effect and finish commit together, and both need the lock that the overtaking change held.
    before = revision.until and task.finished_at and task.finished_at < revision.until
    if not times and before and task.status == TaskStatus.COMPLETED:
        yield f"lost: completed at {task.finished_at} without a reminder"
