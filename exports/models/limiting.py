"""Limits: what one person may ask for at once, in one file, and keep stored."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connection, models
from django.db.models import Sum
from django.template.defaultfilters import filesizeformat
from django.utils.formats import date_format, number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from exports.rows import rows_of
from tasks.models import BackgroundTask, TaskStatus
from tickets.models import Comment, Ticket, TicketEvent, User

# PostgreSQL's own estimate, kept by its autovacuum, may lag behind by some part of a table.
_ESTIMATE = """
SELECT sum(reltuples) FILTER (WHERE reltuples >= 0), bool_or(reltuples < 0)
FROM pg_class WHERE oid = ANY(%s::regclass[])
"""


class LimitReached(ValidationError):
    """Nothing was done. ``message`` says what to do instead.

    Attributes:
        status: the HTTP status for programs: 400 where asking later would not help, else 429.
    """

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status


class Limited(models.QuerySet):
    """Mixin of the exports' queryset."""

    def lock_person(self, person) -> None:
        """Until the end of the transaction nobody else's request or finish counts this person's
        exports. Rows that refer to the person may be written meanwhile."""
        locked = User.objects.select_for_update(no_key=True).filter(pk=person.pk)
        list(locked.values_list("pk"))

    def refuse_more_of(self, person, besides: int = 0) -> None:
        """Refuse another export if the person has as many under way, or as much stored, as allowed.

        Call it with the person locked, or two requests may both slip under a limit.

        Args:
            besides: how many of those under way are the one that is asked for.

        Raises:
            LimitReached: with what to do instead.
        """
        allowed = settings.TEAMDESK_EXPORTS_PER_PERSON
        # Reader of the index exports_live.
        live = BackgroundTask.objects.live().filter(kind="EXPORT", owner=person).count() - besides
        if live >= allowed:
            text = ngettext(
                "You have %(count)s export under way, and no more are allowed at once. Wait until"
                " it has ended, or cancel it.",
                "You have %(count)s exports under way, and no more are allowed at once. Wait until"
                " one has ended, or cancel one.",
                live,
            )
            raise LimitReached(text % {"count": live}, 429)
        if self.bytes_left_for(person) <= 0:
            raise LimitReached(self._full(person), 429)

    def refuse_rows(self, tickets, row_kind: str, announced: int | None = None) -> None:
        """Refuse a file of more rows than one may have. ``announced``: they are counted already.

        Without that, where the tables as a whole cannot hold so many, nothing is counted: a
        request must be answered at once.

        Raises:
            LimitReached: with what to do instead.
        """
        allowed = settings.TEAMDESK_EXPORT_MAX_ROWS
        if announced is None:
            if _tables_hold_fewer_than(allowed):
                return
            announced = rows_of(tickets, row_kind).order_by()[: allowed + 1].count()
        if announced > allowed:
            raise LimitReached(too_many_rows(), 400)

    def bytes_left_for(self, person) -> int:
        """What the person's next file may take. Expired files do not count, purged or not."""
        stored = self._stored_of(person).aggregate(size=Sum("size"))["size"] or 0
        return settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON - stored

    def _stored_of(self, person):
        stored = self.of(person).with_state().filter(task__status=TaskStatus.COMPLETED)
        return stored.filter(is_expired=False)

    def _full(self, person) -> str:
        allowed = filesizeformat(settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON)
        first = self._stored_of(person).order_by("task__expires_at").first()
        if first is None or first.task.expires_at is None:
            return _(
                "Your files take all of the %(size)s that they may. Delete one that you need no"
                " more."
            ) % {"size": allowed}
        when = date_format(localtime(first.task.expires_at), "DATETIME_FORMAT")
        return _(
            "Your files take all of the %(size)s that they may. Delete one that you need no more,"
            " or export again when the first of them has expired, on %(when)s."
        ) % {"size": allowed, "when": when}


def too_many_rows() -> str:
    allowed = number_format(settings.TEAMDESK_EXPORT_MAX_ROWS, force_grouping=True)
    return _(
        "A file may have %(rows)s rows, and this one would have more. Narrow the filters, for"
        " example to a month, and export in parts."
    ) % {"rows": allowed}


def too_many_bytes() -> str:
    allowed = filesizeformat(settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON)
    return _(
        "With this file yours would take more than the %(size)s that they may. Choose fewer"
        " columns, narrow the filters, or delete older files."
    ) % {"size": allowed}


def _tables_hold_fewer_than(rows: int) -> bool:
    """By PostgreSQL's estimate, with room for one that lags behind; False if it has none."""
    tables = [model._meta.db_table for model in (Ticket, Comment, TicketEvent)]
    with connection.cursor() as cursor:
        cursor.execute(_ESTIMATE, [tables])
        estimate, is_unknown = cursor.fetchone()
    return not is_unknown and estimate * 2 < rows
