"""What an address of the ticket list asks for: filters, or a saved view and what was changed since
it was opened; and the addresses that its links lead to."""

from functools import cached_property
from urllib.parse import urlencode

from django.http import Http404, QueryDict
from django.utils import timezone

from tickets.columns import USUAL_FIELDS, known_fields
from tickets.filter_form import Choices, TicketFilterForm
from tickets.filters import ALIASES, TicketFilter, pairs
from tickets.models import ListSettings, SavedView

SHOWN = 12  # saved views beside the built-in ones, and counted; the others have a page
_FILTERS = {*TicketFilterForm.base_fields, *ALIASES}


class Listing:
    """``view=5`` alone is that view as it was saved. With filters beside it they are the filters,
    all of them, and it is the view that they began with.

    Attributes:
        view: a SavedView or None.
        views: those of the person that are shown beside the built-in ones.
        chosen: the TicketFilter.
        columns: fields that are shown.
    """

    def __init__(self, params: QueryDict, person):
        """Raises Http404: a view that is not there, or not for them."""
        self.person = person
        self.settings = ListSettings.objects.of(person)
        visible = SavedView.objects.visible_to(person).select_related("team", "owner")
        self.all_views = self.settings.in_order(visible)
        self.view = self._view_named(params.get("view"))
        self.views = self.all_views[:SHOWN]
        if self.view and self.view not in self.views:
            self.views.append(self.view)
        zone = timezone.get_current_timezone()
        self.queries = {view.pk: view.query(zone) for view in self.views}
        begun_with = self.queries[self.view.pk] if self.view else {}
        has_filters = self.view is None or any(name in _FILTERS for name in params)
        given = params if has_filters else begun_with
        assignees = [query.get("assignee", "") for query in (given, *self.queries.values())]
        self.choices = Choices(person, assignees)
        self.chosen = TicketFilter(given, person, self.choices)
        # What does not fit the person any more is not "changed" by them.
        begun = TicketFilter(begun_with, person, self.choices) if self.view else self.chosen
        self.has_other_filters = self.chosen.query != begun.query
        self._columns_given = known_fields(params.getlist("columns"))
        self.columns = self._columns_given or self._usual_columns
        self.has_other_columns = self.columns != self._usual_columns

    def _view_named(self, text: str | None) -> SavedView | None:
        if text is None:
            return None
        for view in self.all_views:
            if str(view.pk) == text:
                return view
        raise Http404

    @cached_property
    def _usual_columns(self) -> list[str]:
        of_view = known_fields(self.view.columns) if self.view else []
        return of_view or known_fields(self.settings.columns) or USUAL_FIELDS

    @property
    def is_changed(self) -> bool:
        """Is it another list than the view that it began with?"""
        return self.view is not None and (self.has_other_filters or self.has_other_columns)

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Names and values of the parameters beside filters that a change of filters keeps."""
        kept = {"view": self.view.pk} if self.view else {}
        if self.has_other_columns:
            kept["columns"] = self.columns
        return pairs(kept)

    def urlencode(self, **changes) -> str:
        """The query string of this list with ``changes``; None takes a parameter out."""
        page = {name: changes.pop(name) for name in ("cursor", "page") if name in changes}
        query = self.chosen.query | changes
        if self.view and not changes and not self.has_other_filters:
            query = {}  # the view says it
        elif self.view and not any(value is not None for value in query.values()):
            query = {"q": ""}  # no filter, which is another thing than the view's
        return urlencode([*self.kept, *pairs(query), *pairs(page)])

    def file_query(self) -> str:
        """The parameters of an export of this list, with its columns where it has its own."""
        has_own = self.view is not None or self.has_other_columns
        return self.chosen.urlencode(**({"columns": self.columns} if has_own else {}))

    def save_query(self) -> str:
        """The parameters of a view that would be this list."""
        return self.chosen.urlencode(columns=self.columns)
