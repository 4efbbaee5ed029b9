"""Actions of the admin on many rows: one verb a row, and each row's outcome told."""

import logging
from collections.abc import Callable

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import DatabaseError, DataError
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tasks.errors import describe

logger = logging.getLogger(__name__)

ROWS_AT_ONCE = 500  # one request, one verb a row; more would outlive a web server's patience
ROWS_NAMED = 50  # in one message
COUNT_LIMIT = 10_000

Outcome = tuple[int, str]  # a level of django.contrib.messages, and what happened


class ReadOnly:
    """Admin of rows that only the program writes."""

    def has_add_permission(self, request, obj=None):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


class _ForgivingChangeList(ChangeList):
    def get_results(self, request):
        try:
            super().get_results(request)
        except DataError as error:
            raise IncorrectLookupParameters(error) from error


class Forgiving:
    """A filter in the address that PostgreSQL cannot compare (a text with NUL, a text with a list)
    is dropped as Django drops others it cannot read, instead of ending in a server error."""

    def get_changelist(self, request, **kwargs):
        return _ForgivingChangeList


class CappedPaginator(Paginator):
    """Counts no further than COUNT_LIMIT: counting a big table costs more than its page."""

    @cached_property
    def count(self):
        return self.object_list.order_by()[: COUNT_LIMIT + 1].count()

    @property
    def is_capped(self) -> bool:
        return self.count > COUNT_LIMIT


class BigTable(Forgiving):
    """Admin of a table that may have millions of rows: no page counts or lists all of them."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_max_show_all = 0
    change_list_template = "admin/big_change_list.html"


def each_row(model_admin, request, rows, act: Callable[..., Outcome]) -> None:
    """Call ``act(row)`` for each row and tell the person what happened, one message an outcome.

    A row that the database refuses is reported like any other outcome and stops no other row.
    """
    if rows.order_by()[: ROWS_AT_ONCE + 1].count() > ROWS_AT_ONCE:
        text = _(
            "Nothing was changed: at most %(limit)d rows at once. Narrow the list with a filter."
        )
        model_admin.message_user(request, text % {"limit": ROWS_AT_ONCE}, messages.ERROR)
        return
    outcomes: dict[Outcome, list] = {}
    for row in rows:
        try:
            level, text = act(row)
        except DatabaseError as error:
            logger.exception("An admin action failed on %r", row)
            level, text = messages.ERROR, describe(error)
        outcomes.setdefault((level, text), []).append(row.pk)
        if level == messages.SUCCESS:
            # The verb records the change; this says in the admin's own history who asked for it.
            model_admin.log_change(request, row, text)
    for (level, text), pks in sorted(outcomes.items()):
        model_admin.message_user(request, f"{text}: {_listed(pks)}", level)


def _listed(pks: list) -> str:
    text = ", ".join(f"#{pk}" for pk in pks[:ROWS_NAMED])
    more = len(pks) - ROWS_NAMED
    if more > 0:
        text += ngettext(" and %(more)d more", " and %(more)d more", more) % {"more": more}
    return text
