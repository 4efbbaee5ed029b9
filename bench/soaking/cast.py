"""Who works in a soak, and what they find there."""

from dataclasses import dataclass

from tickets.models import Team, Ticket, User

PASSWORD = "soak-and-wring"
ARCHIVED = 4_000  # tickets that nobody changes: about 3 MB of CSV, several chunks


@dataclass(frozen=True)
class Cast:
    """``dora`` opens tickets, ``emil`` is their assignee, ``fred`` exports."""

    dora: User
    emil: User
    fred: User
    desk: Team
    archive: Team
    archived: int


def set_up(archived: int = ARCHIVED) -> Cast:
    people = [
        User.objects.create_user(name, f"{name}@example.org", PASSWORD)
        for name in ("dora", "emil", "fred")
    ]
    teams = [Team.objects.create(name=name, slug=name.lower()) for name in ("Desk", "Archive")]
    for team in teams:
        for person in people:
            team.memberships.create(user=person, role="agent")
    Ticket.objects.bulk_create(
        Ticket(
            team=teams[1],
            creator=people[0],
            subject=f"Archived {number}",
            description=f"Line {number} of many, with a comma\n" * 18,
        )
        for number in range(archived)
    )
    return Cast(*people, *teams, archived)
