"""Plays the demo's stories through the verbs, then moves what they wrote to when it "happened"."""

import random
from datetime import datetime, timedelta

from tasks.clock import database_now
from tasks.models import BackgroundTask
from tickets.models import Comment, Notification, Team, Ticket, TicketEvent, User
from tickets.models.mail_delivery import MAIL

from .stories import STORIES, Stories

COUNTS = {"support": 120, "billing": 65, "field-service": 60, "customers-china": 60}

_MINUTES = [2, 5, 9, 20, 45]  # until the due dates of the first tickets of a team


class Staged:
    """A ticket whose every step has its own moment. Demo only: nothing else rewrites history."""

    def __init__(self, at: datetime, **fields):
        self.ticket = Ticket.objects.open(**fields)
        self.moments = [at]
        self.comments: list[Comment] = []

    def step(self, at: datetime, verb, *args, **kwargs) -> None:
        """``verb`` is a function of a ticket that says whether it did anything."""
        result = verb(self.ticket, *args, **kwargs)
        if result:
            self.moments.append(at)
        if isinstance(result, Comment):
            result.created_at = at
            self.comments.append(result)

    def settle(self, external_id: str) -> None:
        """Date everything back to when it "happened"."""
        events = list(self.ticket.events.order_by("pk"))
        # What one verb writes has one time, so each step's events are found by theirs.
        written = dict(zip(sorted({event.at for event in events}), self.moments, strict=True))
        for event in events:
            event.at = written[event.at]
        TicketEvent.objects.bulk_update(events, ["at"])
        Comment.objects.bulk_update(self.comments, ["created_at"])
        ticket, last = self.ticket, self.moments[-1]
        for name in ("first_responded_at", "resolved_at", "closed_at"):
            at = getattr(ticket, name)
            setattr(ticket, name, at and written[at])
        ticket.created_at, ticket.updated_at = self.moments[0], last
        ticket.external_id = external_id
        ticket.save()
        told = Notification.objects.filter(ticket=ticket)
        is_old = last < database_now() - timedelta(days=2)
        told.update(created_at=last, read_at=last + timedelta(hours=1) if is_old else None)


class Stage:
    """Deterministic: the same stories in the same order, relative to now."""

    def __init__(self, teams: dict[str, Team], people: dict[str, User]):
        self.teams, self.people = teams, people
        self.now = database_now().replace(microsecond=0)

    def play(self, slug: str) -> int:
        """Add the team's tickets that are not there yet. Returns how many."""
        team, stories = self.teams[slug], STORIES[slug]
        workers = list(team.workers())
        ids = [f"demo-{slug}-{number:03}" for number in range(COUNTS[slug])]
        known = Ticket.objects.existing_external_ids(team, ids)
        added = 0
        for number, external_id in enumerate(ids):
            if external_id in known or not workers:
                continue
            # Seeded by the ticket's own name, so each is the same whichever others exist.
            dice = random.Random(external_id)  # noqa: S311  stories, not secrets
            self._play_one(dice, team, stories, workers, number).settle(external_id)
            added += 1
        # It all "happened" long ago: nobody gets mail about it now. The deliveries go as well.
        mails = BackgroundTask.objects.filter(kind=MAIL, ticket__external_id__in=set(ids) - known)
        mails.filter(ticket__team=team).delete()
        return added

    def _play_one(self, dice, team, stories: Stories, workers, number) -> Staged:
        slots = {name: dice.choice(values) for name, values in stories.slots.items()}
        subject, description, tags = stories.subjects[number % len(stories.subjects)]
        name, address = dice.choice(stories.customers)
        at = self.now - timedelta(hours=dice.triangular(1, 40 * 24, 60))
        creator = dice.choice(workers)
        staged = Staged(
            at,
            by=creator,
            team=team,
            subject=subject.format(**slots),
            description=description.format(**slots),
            priority=dice.choices(["low", "normal", "high", "urgent"], [2, 5, 3, 1])[0],
            requester_name=name,
            requester_email=address,
            tags=tags,
        )
        for verb, *args in self._plot(dice, stories, workers, number):
            later = at + timedelta(minutes=dice.triangular(3, 60 * 30, 40))
            # A plot that reaches beyond now is hurried: each step halves what is left.
            at = later if later < self.now else at + (self.now - at) / 2
            staged.step(at, verb, *args, by=dice.choice(workers))
        return staged

    def _plot(self, dice, stories: Stories, workers, number):
        """What happens to it, in order."""
        due_at = self._due_at(dice, number)
        is_live = due_at is not None or dice.random() < 0.35
        if dice.random() < 0.85:
            yield Ticket.assign, dice.choice(workers)
        if dice.random() < 0.35:
            yield _note, dice.choice(stories.notes)
        if dice.random() < 0.3:
            yield Ticket.set_priority, dice.choice(["high", "urgent", "low"])
        replies = dice.sample(stories.replies, dice.choice([0, 1, 1, 2]) if is_live else 1)
        for reply in replies:
            yield _reply, reply
        if due_at:
            yield Ticket.set_due, due_at
        if is_live:
            if dice.random() < 0.45:
                yield Ticket.set_status, dice.choice(["pending", "pending", "on_hold"])
            return
        yield _reply, dice.choice(stories.endings)
        yield (Ticket.resolve,)
        if dice.random() < 0.15:
            yield (Ticket.reopen,)
            yield _reply, dice.choice(stories.replies)
            yield (Ticket.resolve,)
        if dice.random() < 0.6:
            yield (Ticket.close,)

    def _due_at(self, dice, number: int) -> datetime | None:
        """The first tickets of each team are the lively ones: due within minutes, today, overdue,
        and in the days to come."""
        if number < len(_MINUTES):
            return self.now + timedelta(minutes=_MINUTES[number])
        if number < 10:
            return self.now + timedelta(hours=dice.uniform(1, 10))
        if number < 17:
            return self.now - timedelta(hours=dice.uniform(1, 70))
        if number < 27:
            return self.now + timedelta(hours=dice.uniform(20, 300))
        return None


def _reply(ticket, body, *, by):
    return ticket.comment(by=by, body=body)


def _note(ticket, body, *, by):
    return ticket.comment(by=by, body=body, is_public=False)
