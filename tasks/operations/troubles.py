"""Tasks with an error, grouped by what the error says; the verbs on a whole group."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import CharField, Func, Value
from django.db.models.functions import Left

from tasks.models import BackgroundTask, TaskStatus
from tasks.transactions import answering_within

LOOKED_AT = 5_000  # the newest rows of each state; more are the same troubles again
GROUPS = 20
ROWS_AT_ONCE = 500  # one request, one verb a row
ANSWER_MILLISECONDS = 2_000

# What an error says without its numbers: two time-outs after 20.1 s and 20.3 s are one trouble.
_PATTERN, _SHOWN = "[0-9]+", 200

_GROUPS = """
SELECT status, kind, error, count(*), min(at), max(at), max(id) FROM (
    (SELECT id, status, kind, last_error, finished_at AS at FROM tasks_backgroundtask
     WHERE status = 'FAILED' ORDER BY id DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT id, status, kind, last_error, updated_at AS at FROM tasks_backgroundtask
     WHERE status = 'WAITING' AND last_error <> '' ORDER BY id DESC LIMIT %(limit)s)
) AS troubled,
LATERAL (SELECT left(regexp_replace(split_part(last_error, E'\\n', 1), %(pattern)s, '#', 'g'),
                     %(shown)s)) AS said (error)
GROUP BY status, kind, error ORDER BY status, count(*) DESC, kind, error LIMIT %(groups)s
"""


@dataclass(frozen=True)
class Trouble:
    """Tasks of one kind and state whose errors say the same. FAILED ones can be retried; WAITING
    ones try again by themselves and can be cancelled."""

    status: str
    kind: str
    error: str
    count: int
    first_at: datetime
    last_at: datetime
    latest: int

    @property
    def is_dead(self) -> bool:
        return self.status == TaskStatus.FAILED

    @property
    def verb(self) -> str:
        return "retry" if self.is_dead else "cancel"


def troubles() -> list[Trouble]:
    """The biggest groups, failed ones first. Raises DatabaseError."""
    with answering_within(ANSWER_MILLISECONDS), connection.cursor() as cursor:
        cursor.execute(
            _GROUPS,
            {"limit": LOOKED_AT, "pattern": _PATTERN, "shown": _SHOWN, "groups": GROUPS},
        )
        return [Trouble(*row) for row in cursor.fetchall()]


def tasks_in(status: str, kind: str, error: str):
    """The newest ROWS_AT_ONCE tasks of a group, as a queryset, and how many more there are among
    those looked at."""
    newest = BackgroundTask.objects.filter(status=status).order_by("-id")
    if status == TaskStatus.WAITING:
        newest = newest.exclude(last_error="")
    group = (
        BackgroundTask.objects.filter(pk__in=newest.values("pk")[:LOOKED_AT], kind=kind)
        .annotate(said=_said())
        .filter(status=status, said=error)
        .order_by("-id")
    )
    pks = list(group.values_list("pk", flat=True))
    return BackgroundTask.objects.filter(pk__in=pks[:ROWS_AT_ONCE]), max(0, len(pks) - ROWS_AT_ONCE)


def _said() -> Left:
    line = Func("last_error", Value("\n"), Value(1), function="split_part")
    without_numbers = Func(
        line, Value(_PATTERN), Value("#"), Value("g"), function="regexp_replace",
        output_field=CharField(),
    )  # fmt: skip
    return Left(without_numbers, _SHOWN)
