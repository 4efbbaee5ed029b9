"""The demo's teams and people."""

from dataclasses import dataclass, field

from django.contrib.auth.hashers import make_password

from tickets.models import Role, Team, User

PASSWORD = "teamdesk-demo"  # noqa: S105  printed at the end of the command; known to everyone

TEAMS = {
    "support": "Support",
    "billing": "Billing",
    "field-service": "Field service",
    "customers-china": "中国客户服务",
}


@dataclass
class Person:
    username: str
    first_name: str
    last_name: str
    roles: dict[str, str]
    about: str
    more: dict = field(default_factory=dict)


_BERLIN = {"time_zone": "Europe/Berlin"}
_CHINA = {"time_zone": "Asia/Shanghai", "language": "zh-hans"}

CAST = [
    Person(
        "admin",
        "Ada",
        "Minor",
        {},
        "administrator, sees everything",
        {"is_staff": True, "is_superuser": True},
    ),
    Person(
        "alice",
        "Alice",
        "Moreau",
        {"support": Role.LEAD, "field-service": Role.AGENT},
        "lead of Support, also agent of Field service",
        {"is_staff": True} | _BERLIN,
    ),
    Person("bob", "Bob", "Keller", {"support": Role.AGENT}, "agent of Support"),
    Person("vera", "Vera", "Lindqvist", {"support": Role.VIEWER}, "views Support, changes nothing"),
    Person("charlie", "Charlie", "Osei", {"billing": Role.AGENT}, "agent of Billing only"),
    Person("dana", "Dana", "Petrov", {"billing": Role.LEAD}, "lead of Billing"),
    Person("emil", "Emil", "Sund", {"field-service": Role.LEAD}, "lead of Field service", _BERLIN),
    Person("farah", "Farah", "Aziz", {"field-service": Role.AGENT}, "agent of Field service"),
    Person(
        "mei",
        "陈梅",
        "",
        {"customers-china": Role.LEAD, "support": Role.VIEWER},
        "lead of 中国客户服务; Chinese interface, time of Shanghai",
        _CHINA,
    ),
    Person("lin", "林浩", "", {"customers-china": Role.AGENT}, "agent of 中国客户服务", _CHINA),
]


def bring_in_teams() -> dict[str, Team]:
    """The teams by slug; those that exist stay as they are."""
    return {
        slug: Team.objects.get_or_create(slug=slug, defaults={"name": name})[0]
        for slug, name in TEAMS.items()
    }


def bring_in_people(teams: dict[str, Team]) -> tuple[dict[str, User], list[str]]:
    """The people by name, and the names of those who existed: their passwords stay theirs."""
    password = make_password(PASSWORD)  # once for all: hashing is slow by design
    people, known = {}, []
    for person in CAST:
        defaults = person.more | {
            "first_name": person.first_name,
            "last_name": person.last_name,
            "email": f"{person.username}@teamdesk.example",
            "password": password,
        }
        user, is_new = User.objects.get_or_create(username=person.username, defaults=defaults)
        people[person.username] = user
        if not is_new:
            known.append(person.username)
            continue
        for slug, role in person.roles.items():
            teams[slug].memberships.get_or_create(user=user, defaults={"role": role})
    return people, known
