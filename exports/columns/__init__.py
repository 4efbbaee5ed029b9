"""The columns of a file, for each kind of row: their titles, what their values are, and the SQL
that makes each cell."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from exports.models.choices import RowKind

from . import conversation, history, tickets
from .column import Column, Kind

__all__ = ["COLUMNS_OF", "Column", "Kind", "chosen", "selected"]

# Each in the file's order.
COLUMNS_OF: dict[str, dict[str, Column]] = {
    RowKind.TICKETS: tickets.COLUMNS,
    RowKind.CONVERSATION: conversation.COLUMNS,
    RowKind.HISTORY: history.COLUMNS,
}


def chosen(keys: list[str] | None, row_kind: str = RowKind.TICKETS) -> list[str]:
    """These columns' keys in the file's order, each once; None means those chosen by default.

    Raises:
        ValidationError: an unknown key or kind of row, or no key at all.
    """
    if row_kind not in COLUMNS_OF:
        raise ValidationError(
            _("There is no kind of row “%(name)s”. Kinds are: %(known)s.")
            % {"name": str(row_kind)[:100], "known": ", ".join(COLUMNS_OF)}
        )
    columns = COLUMNS_OF[row_kind]
    if keys is None:
        return [key for key, column in columns.items() if column.by_default]
    unknown = sorted(set(keys) - set(columns))
    if unknown:
        raise ValidationError(
            _("There is no column “%(name)s”. Columns are: %(known)s.")
            % {"name": unknown[0][:100], "known": ", ".join(columns)}
        )
    if not keys:
        raise ValidationError(_("Choose at least one column."))
    return [key for key in columns if key in keys]


def selected(keys: list[str], row_kind: str = RowKind.TICKETS) -> dict[str, Column]:
    """The columns of these keys, in their order."""
    return {key: COLUMNS_OF[row_kind][key] for key in keys}
