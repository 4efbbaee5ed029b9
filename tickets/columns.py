"""Columns of the ticket list: those there are, and those that are shown."""

from typing import NamedTuple

from django.utils.translation import gettext_lazy as _


class ListColumn(NamedTuple):
    field: str  # the ticket's, and the name of the same column in an export
    label: str
    sort: str = ""  # the key it is sorted by; empty if it is not
    first: str = ""  # what a first click puts before the key
    is_usual: bool = True


COLUMNS = [
    ListColumn("id", _("ID"), "id", "-"),
    ListColumn("subject", _("Subject"), "subject"),
    ListColumn("status", _("Status"), "status"),
    ListColumn("priority", _("Priority"), "priority"),
    ListColumn("requester_name", _("Requester"), is_usual=False),
    ListColumn("assignee", _("Assignee")),
    ListColumn("team", _("Team")),
    ListColumn("creator", _("Creator"), is_usual=False),
    ListColumn("tags", _("Tags"), is_usual=False),
    ListColumn("due_at", _("Due"), "due"),
    ListColumn("created_at", _("Created"), "created", "-", is_usual=False),
    ListColumn("updated_at", _("Updated"), "updated", "-"),
    ListColumn("resolved_at", _("Resolved"), is_usual=False),
]
USUAL_FIELDS = [column.field for column in COLUMNS if column.is_usual]


def known_fields(fields) -> list[str]:
    """Those of them that are columns, in the list's order, and the subject, by which a ticket is
    opened; none if none of them is a column."""
    known = [column.field for column in COLUMNS if column.field in fields]
    if not known:
        return []
    return [column.field for column in COLUMNS if column.field in {*known, "subject"}]
