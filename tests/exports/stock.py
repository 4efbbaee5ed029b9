"""Tickets of every sort, with what was said and done on them, for filters to choose from."""

import itertools
import random
from datetime import timedelta

from django.utils import timezone

from exports.models import RowKind
from tickets.models import (
    Comment,
    EventKind,
    Ticket,
    TicketEvent,
    TicketPriority,
    TicketStatus,
)
from tickets.models.ticket_event import REMINDER_RULE

WORDS = ["Printer", "fire", "退款", "Ünïcode", "100% off", "a_b", "naïve", "=SUM(1)", "\\n", "'q'"]
REQUESTERS = [("", ""), ("Rita Roe", "rita@example.org"), ("李雷", ""), ("", "x@example.net")]
TAGS = ["red", "blue", "vpn", "月末", "=tag", "two words"]


def fill(teams, people, *, count: int = 60, seed: int = 11) -> list[Ticket]:
    """``count`` tickets in turn in ``teams``, by the same dice every time. Their times lie within
    some weeks around now, several of them in the same second."""
    dice = random.Random(seed)
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)

    def moment(days: int):
        return midnight + timedelta(hours=dice.randrange(-24 * days, 24 * days, 6))

    tickets = []
    for team, _ in zip(itertools.cycle(teams), range(count), strict=False):
        name, email = dice.choice(REQUESTERS)
        tickets.append(
            Ticket(
                team=team,
                subject=" ".join(dice.sample(WORDS, 2)),
                description=dice.choice(["", "It burns.", "多行\ntext"]),
                status=dice.choice(TicketStatus.values),
                priority=dice.choice(TicketPriority.values),
                requester_name=name,
                requester_email=email,
                creator=dice.choice([None, *people]),
                assignee=dice.choice([None, *people]),
                tags=dice.sample(TAGS, dice.randrange(3)),
                due_at=dice.choice([None, moment(20)]),
                created_at=moment(30),
                updated_at=moment(10),
                first_responded_at=dice.choice([None, moment(10)]),
                resolved_at=dice.choice([None, moment(10)]),
            )
        )
    tickets = Ticket.objects.bulk_create(tickets)
    Comment.objects.bulk_create(
        Comment(
            ticket=ticket,
            author=dice.choice([None, *people]),
            author_text="Somebody of old",
            body=f"{dice.choice(WORDS)} {number}",
            is_public=dice.random() < 0.5,
            created_at=moment(5),
        )
        for ticket in tickets
        for number in range(dice.randrange(4))
    )
    TicketEvent.objects.bulk_create(
        event
        for ticket in tickets
        for event in dice.sample(_events_of(ticket, people[0], moment(5)), dice.randrange(6))
    )
    return tickets


def _events_of(ticket, person, at) -> list[TicketEvent]:
    """One edit, all of it at one moment, and what the system did."""
    by_person, by_rule = TicketEvent.by(person), TicketEvent.by(None, REMINDER_RULE)
    changed = {"ticket": ticket, "kind": EventKind.CHANGED, "version": 2, "at": at} | by_person
    return [
        TicketEvent(ticket=ticket, kind=EventKind.CREATED, version=1, at=at, **by_person),
        TicketEvent(field="status", old_value="open", new_value="on_hold", **changed),
        TicketEvent(field="priority", old_value="low", new_value="urgent", **changed),
        TicketEvent(field="due_at", new_value="2026-10-25T00:30:00+00:00", **changed),
        TicketEvent(field="subject", old_text="=old", new_text="new", **changed),
        TicketEvent(
            ticket=ticket, kind=EventKind.REMINDED, new_text="Bob", version=2, at=at, **by_rule
        ),
    ]


def rows_by_hand(ids: list[int], row_kind: str) -> list[tuple]:
    """Ticket id and comment or event (None for a ticket without a comment) of each row that a file
    of these tickets must have, in its order, read from the tables one by one."""
    if row_kind == RowKind.TICKETS:
        return [(pk, None) for pk in ids]
    if row_kind == RowKind.CONVERSATION:
        found = Comment.objects.select_related("author")
    else:
        found = TicketEvent.objects.select_related("actor")
    of_ticket: dict[int, list] = {pk: [] for pk in ids}
    for each in found.filter(ticket__in=ids):
        at = each.created_at if row_kind == RowKind.CONVERSATION else each.at
        of_ticket[each.ticket_id].append((at, each.pk, each))
    for each in of_ticket.values():
        each.sort()
        if not each and row_kind == RowKind.CONVERSATION:
            each.append((None, None, None))
    return [(pk, each) for pk in ids for _, _, each in of_ticket[pk]]
