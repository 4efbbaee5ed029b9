"""Who is in a helpdesk of the benchmark, and its tickets. Runs in a process with Django."""

from django.conf import settings
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
)
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, transaction

from bench.exporting.words import LEADS, Pools
from tickets.models import Team, Ticket, User

ZONE = "Europe/Berlin"
TEAMS = ("Support", "Billing", "Логистика", "客服", "Field service", "Retail", "IT", "+Priority")
SMALL_TEAM, SMALL_TEAMS_TICKETS = "Night desk", 50  # of the people who only ask for exports

# Drawn first, so that each ticket's dice fall once. Its life decides what follows from each other:
# 15 % are open, 10 % pending, 5 % on hold, 30 % resolved, 40 % closed; the oldest come first.
_INSERT = """
INSERT INTO tickets_ticket (
    id, team_id, subject, description, status, priority, creator_id, requester_name,
    requester_email, assignee_id, tags, due_at, reminder_revision, version,
    created_at, updated_at, first_responded_at, resolved_at, closed_at
)
SELECT draw.i,
    CASE WHEN draw.i <= %(small)s THEN %(small_team)s ELSE %(first_team)s + draw.team END,
    subject.text || ' (' || draw.i || ')',
    description.text,
    CASE WHEN life < .15 THEN 'open' WHEN life < .25 THEN 'pending' WHEN life < .3 THEN 'on_hold'
         WHEN life < .6 THEN 'resolved' ELSE 'closed' END,
    CASE WHEN urgency < .2 THEN 'low' WHEN urgency < .8 THEN 'normal'
         WHEN urgency < .95 THEN 'high' ELSE 'urgent' END,
    CASE WHEN urgency < .85 THEN %(first_agent)s + draw.creator END,
    requester.text,
    'requester' || draw.requester || '@example.org',
    CASE WHEN life > .05 THEN %(first_agent)s + draw.assignee END,
    string_to_array(tags.text, '|'),
    CASE WHEN due < .4 THEN draw.created_at + interval '25 days' * due END,
    0, 1,
    draw.created_at,
    draw.updated_at,
    CASE WHEN life > .1 THEN draw.created_at + (draw.updated_at - draw.created_at) * .2 END,
    CASE WHEN life >= .3 THEN draw.created_at + (draw.updated_at - draw.created_at) * .9 END,
    CASE WHEN life >= .6 THEN draw.updated_at END
FROM (
    SELECT i, created_at,
        created_at + least(now() - created_at, interval '60 days') * power(random(), 3)
            AS updated_at,
        random() AS life, random() AS urgency, random() AS due,
        floor(random() * %(teams)s)::int AS team,
        floor(random() * %(subjects)s)::int AS subject,
        floor(random() * %(descriptions)s)::int AS description,
        floor(random() * %(requesters)s)::int AS requester,
        floor(random() * %(tag_lists)s)::int AS tags,
        floor(random() * %(agents)s)::int AS creator,
        floor(random() * %(agents)s)::int AS assignee
    FROM (
        SELECT i, now() - interval '3 years' * (1 - i::float8 / %(tickets)s) AS created_at
        FROM generate_series(1, %(tickets)s) i
    ) birth
) draw
JOIN bench_subjects subject ON subject.n = draw.subject
JOIN bench_descriptions description ON description.n = draw.description
JOIN bench_requesters requester ON requester.n = draw.requester
JOIN bench_tags tags ON tags.n = draw.tags
"""


def fill(tickets: int) -> int:
    """A helpdesk with this many tickets. Returns how many it has."""
    pools = Pools()
    teams = Team.objects.bulk_create(
        Team(name=name, slug=f"team-{number}") for number, name in enumerate((*TEAMS, SMALL_TEAM))
    )
    for name in LEADS:
        lead = User.objects.create(username=name, time_zone=ZONE, language="en")
        for team in teams:
            team.memberships.create(user=lead, role="lead")
    agents = User.objects.bulk_create(
        User(username=f"agent-{number}", first_name=first, last_name=last)
        for number, (first, last) in enumerate(pools.agents)
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
        cursor.execute("SET LOCAL session_replication_role = replica")  # no look-ups of keys
        # No export reads them, and to build them would take longer than all the rest.
        cursor.execute("DROP INDEX ticket_search, ticket_tags")
        for name in ("subjects", "descriptions", "requesters", "tags"):
            cursor.execute(
                f"CREATE TEMP TABLE bench_{name} AS"
                " SELECT n - 1 AS n, text FROM unnest(%s::text[]) WITH ORDINALITY AS t (text, n)",
                [getattr(pools, name)],
            )
        cursor.execute("SELECT setseed(0.7)")
        cursor.execute(
            _INSERT,
            {
                "tickets": tickets,
                "small": SMALL_TEAMS_TICKETS,
                "small_team": teams[-1].pk,
                "first_team": teams[0].pk,
                "teams": len(TEAMS),
                "first_agent": agents[0].pk,
                "agents": len(agents),
                "subjects": len(pools.subjects),
                "descriptions": len(pools.descriptions),
                "requesters": len(pools.requesters),
                "tag_lists": len(pools.tags),
            },
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) tickets_ticket")
        cursor.execute("ANALYZE")
    return Ticket.objects.count()


def lead(number: int = 0) -> User:
    return User.objects.get(username=LEADS[number])


def session_of(person: User) -> str:
    """The key of a new session in which ``person`` is logged in."""
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    return session.session_key


def lead_session() -> str:
    return session_of(lead())


def askers(people: int) -> list[str]:
    """Sessions of that many people, each of whom may see the small team's tickets only."""
    team = Team.objects.get(name=SMALL_TEAM)
    keys = []
    for number in range(people):
        person, is_new = User.objects.get_or_create(username=f"asker-{number}")
        if is_new:
            team.memberships.create(user=person, role="agent")
        keys.append(session_of(person))
    return keys
