"""Which tasks: the dispatcher's selections, and the two verbs on many tasks."""

import functools
import json
import re
from datetime import timedelta

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Q
from django.db.models.functions import Now

from tasks import correlation, fast_path, queue, registry
from tasks.clock import InUtc

from .pruning import Prunable
from .task_attempt import AttemptOutcome, TaskAttempt
from .task_status import LIVE, TaskStatus

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # in JSON, where a backslash is written as two
_NOTHING = "{}"
PAYLOAD_LIMIT = 16 * 1024  # bytes of JSON; a payload carries ids, not objects

_INSERT = """
INSERT INTO tasks_backgroundtask
    (kind, status, run, attempt, max_attempts, run_at, updated_at, created_at, dedup_key, payload,
     ticket_id, team_id, owner_id, reminder_revision, progress_done, last_error, request_id)
VALUES
    (%(kind)s, 'WAITING', 0, 0, %(max_attempts)s, COALESCE(%(run_at)s, clock_timestamp()),
     clock_timestamp(), clock_timestamp(), %(dedup_key)s, %(payload)s::jsonb,
     %(ticket)s, %(team)s, %(owner)s, %(reminder_revision)s, 0, '', %(request_id)s)
{on_conflict} RETURNING {columns}, run_at <= clock_timestamp()
"""
# bulk_create cannot name a partial index, and DO NOTHING would lose the work of a caller whose
# key's holder is being claimed at this moment. DO UPDATE locks the holder's row: a concurrent
# claim waits for this transaction and then sees what it wrote.
_ON_CONFLICT = """
ON CONFLICT (dedup_key) WHERE status IN ('WAITING', 'RUNNING')
DO UPDATE SET dedup_key = EXCLUDED.dedup_key
"""


_NEW_AND_DUE = """
SELECT {columns} FROM tasks_backgroundtask
WHERE id = ANY(%s) AND status = 'WAITING' AND dispatched_at IS NULL
    AND run_at <= statement_timestamp()
ORDER BY id LIMIT %s
"""


class BackgroundTaskQuerySet(Prunable, models.QuerySet):
    # Selections

    def live(self):
        return self.filter(status__in=LIVE)

    def waiting(self):
        return self.filter(status=TaskStatus.WAITING)

    def never_dispatched(self):
        """Waiting and never handed to the queue. ``run_at`` is an order, not a filter: tomorrow's
        reminder is handed to the delayed set today."""
        return self.waiting().filter(dispatched_at=None).order_by("run_at", "id")

    def due_rechecks(self):
        """Waiting, due within half a minute, and not compared with the queue for as long.

        What is due is few, and its own index finds it: see there why not ``run_at`` itself is
        asked, nor ``dispatched_at``. Its index has all that is far off, and PostgreSQL would rather
        walk through that in the right order than sort.
        """
        now, half_a_minute = Now(), timedelta(seconds=settings.TEAMDESK_RECHECK_SECONDS)
        due = self.waiting().filter(dispatched_at__isnull=False)
        due = due.alias(due_at=InUtc("run_at"), checked_at=InUtc("dispatched_at"))
        due = due.filter(
            due_at__lte=InUtc(now + half_a_minute), checked_at__lt=InUtc(now - half_a_minute)
        )
        return due.order_by("checked_at", "run_at", "id")

    def other_rechecks(self):
        """Waiting and not compared with the queue for half a minute, however far off."""
        since = Now() - timedelta(seconds=settings.TEAMDESK_RECHECK_SECONDS)
        rows = self.waiting().filter(dispatched_at__lt=since)
        return rows.order_by("dispatched_at", "run_at", "id")

    def has_to_hand_over(self) -> tuple[bool, bool, bool]:
        """Are there any never dispatched, any due re-checks, any others? One statement, since a
        quiet system asks it every few seconds and gets three times no."""
        with connection.cursor() as cursor:
            cursor.execute(*_first_of_each(self.model, settings.TEAMDESK_RECHECK_SECONDS))
            return tuple(found is not None for found in cursor.fetchone())

    def with_expired_lease(self):
        limit = Now() - timedelta(seconds=settings.TEAMDESK_LEASE_SECONDS)
        return self.filter(status=TaskStatus.RUNNING, updated_at__lt=limit)

    def with_is_due(self):
        """Adds ``is_due`` by the database's clock."""
        return self.annotate(
            is_due=models.ExpressionWrapper(
                Q(run_at__lte=Now()), output_field=models.BooleanField()
            ),
        )

    def new_and_due(self, ids: list[int]) -> list:
        """Those of ``ids`` that wait, are due and were never dispatched, at most a batch: rows with
        ``is_due``, in id order. In SQL, since every request that enqueues waits for it."""
        with connection.cursor() as cursor:
            cursor.execute(
                _NEW_AND_DUE.format(columns=", ".join(self.model.columns())),
                [ids, settings.TEAMDESK_BATCH_SIZE],
            )
            tasks = [self.model.from_row(row) for row in cursor.fetchall()]
        for task in tasks:
            task.is_due = True
        return tasks

    # Verbs

    def enqueue(
        self,
        kind: str,
        *,
        payload: dict | None = None,
        run_at=None,
        dedup_key: str | None = None,
        ticket=None,
        team=None,
        owner=None,
        reminder_revision: int | None = None,
        fast_path_wanted: bool = True,
    ):
        """Put a task into the ledger, in the caller's transaction. Returns it.

        Args:
            kind: the name of a registered handler.
            payload: JSON, at most 16 KiB; ids, not objects.
            run_at: aware datetime of the years 1900 to 9998; None means now, by the database's
                clock.
            dedup_key: "the same request": while a live task holds this key, that task is returned
                and nothing is added. It never means "the data changed, run again".
            fast_path_wanted: bulk operations pass False and leave the hand-over to the dispatcher.

        Raises:
            registry.UnknownKind: no handler is registered under ``kind``.
            ValueError: the payload is no JSON object, too large or not storable, or ``run_at`` is
                no such moment.
        """
        # Without a key nothing can conflict, and PostgreSQL need not insert on approval.
        on_conflict = "" if dedup_key is None else _ON_CONFLICT
        columns = ", ".join(self.model.columns())
        with connection.cursor() as cursor:
            cursor.execute(
                _INSERT.format(on_conflict=on_conflict, columns=columns),
                {
                    "kind": kind,
                    "max_attempts": registry.known_kind(kind).max_attempts,
                    "run_at": run_at and registry.moment(run_at),
                    "dedup_key": dedup_key,
                    "payload": _encode(payload) if payload else _NOTHING,
                    "ticket": getattr(ticket, "pk", ticket),
                    "team": getattr(team, "pk", team),
                    "owner": getattr(owner, "pk", owner),
                    "reminder_revision": reminder_revision,
                    "request_id": correlation.request_id.get(),
                },
            )
            *row, is_due = cursor.fetchone()
        task = self.model.from_row(row)
        task.is_due = is_due
        if fast_path_wanted:
            fast_path.hand_over_on_commit(task)
        return task

    @transaction.atomic
    def cancel(self, *, by=None, reason: str = "") -> int:
        """WAITING, RUNNING → CANCELLED. Returns how many of these tasks this call cancelled."""
        live = self.model.objects.live().filter(pk__in=self.values("pk"))
        jobs = dict(live.order_by("pk").select_for_update().values_list("pk", "run"))
        if not jobs:
            return 0
        self.model.objects.live().filter(pk__in=jobs).update(
            status=TaskStatus.CANCELLED,
            execution_id=None,
            finished_at=Now(),
            updated_at=Now(),
            last_error=f"Cancelled by {by}." if by else reason,
        )
        TaskAttempt.objects.filter(task_id__in=jobs).close(AttemptOutcome.CANCELLED)
        transaction.on_commit(
            lambda: queue.forget([f"{pk}:{run}" for pk, run in jobs.items()]), robust=True
        )
        return len(jobs)

    def expire(self) -> int:
        """End the time of results that have not expired yet. Returns how many of these tasks it
        was; the purge removes what is stored once its grace for downloads is over."""
        kept = self.filter(status=TaskStatus.COMPLETED).exclude(expires_at__lte=Now())
        return kept.update(expires_at=Now())


@functools.lru_cache(maxsize=1)
def _first_of_each(model, recheck_seconds: float) -> tuple[str, list]:
    """SQL and parameters of ``has_to_hand_over``. It is the selections' own SQL; to make it anew
    each time would cost several times what PostgreSQL needs to answer. In the order of their
    indexes, or the planner may look for the one row in all of the table."""
    tasks = model.objects
    selections = (
        tasks.never_dispatched(),
        tasks.due_rechecks().order_by("due_at"),
        tasks.other_rechecks(),
    )
    questions = [rows.values("pk")[:1].query.sql_with_params() for rows in selections]
    return (
        f"SELECT {', '.join(f'({sql})' for sql, _ in questions)}",
        [value for _, values in questions for value in values],
    )


def _encode(payload: dict) -> str:
    if not isinstance(payload, dict):
        raise ValueError(f"A payload is a JSON object, not {type(payload).__name__}.")
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"The payload is not JSON: {error}") from error
    if _NUL.search(text):
        raise ValueError("The payload has a NUL character, which PostgreSQL cannot store.")
    size = len(text.encode())
    if size > PAYLOAD_LIMIT:
        raise ValueError(f"The payload is {size} bytes, more than {PAYLOAD_LIMIT}; carry ids.")
    return text
