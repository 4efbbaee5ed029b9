"""A ticket as one of many that are changed at once."""

from django.db import transaction

from .editable import clean_changes
from .editing import Edit


class TicketBulkChanging:
    """Capability of Ticket: being changed among many."""

    @transaction.atomic
    def change_among_many(
        self, *, by, changes: dict, version: int | None, add_tags=(), remove_tags=()
    ) -> Edit:
        """``edit``, and tags relative to those that the ticket has now: they meet no conflict,
        whatever tags others set since ``version``. All of it is one edit.

        Raises:
            PermissionDenied, ValidationError: as ``edit`` does; nothing was changed.
        """
        ticket = self._locked()
        ticket._require_right(by, reason="")
        wanted, conflicts = ticket._merge(clean_changes(changes), version)
        if add_tags or remove_tags:
            unwanted = {tag.casefold() for tag in remove_tags}
            kept = [tag for tag in ticket.tags if tag.casefold() not in unwanted]
            wanted["tags"] = [*kept, *add_tags]
        edit = ticket.edit(by=by, changes=wanted)
        self._become(ticket)
        return Edit(edit.saved, conflicts)
