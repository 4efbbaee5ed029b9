"""Asking for an export."""

import hashlib
import json
import uuid
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone, translation

from exports import columns as csv_columns
from tasks.models import BackgroundTask
from tickets.filters import TicketFilter

from .choices import Delimiter, FileFormat, RowKind
from .limiting import Limited


class Requesting(Limited):
    """Mixin of the exports' queryset."""

    @transaction.atomic
    def request(
        self,
        by,
        filters,
        columns: list[str] | None = None,
        key: uuid.UUID | None = None,
        *,
        row_kind: str = RowKind.TICKETS,
        file_format: str = FileFormat.CSV,
        delimiter: str = Delimiter.COMMA,
        time_zone: str = "",
        filters_zone: str = "",
        announced_rows: int | None = None,
    ):
        """Ask for a file of the tickets that ``filters`` select. Returns the export, WAITING.

        Args:
            filters: parameters of the ticket list, as a QueryDict or a dict.
            columns: keys of ``exports.columns.COLUMNS_OF[row_kind]``; None means those that are
                chosen by default.
            key: names this very click: the same key and choices again, while the first is under
                way, return the first. Other choices are another export: the browser's Back button
                brings the key back.
            row_kind: what each row of the file is.
            time_zone: of the times in the file; empty means the requester's own.
            filters_zone: of the days in the filters; empty means the requester's own, as in the
                list.
            announced_rows: how many the person was told that the file would have.

        Raises:
            ValidationError: filters, columns or a kind of row that do not exist.
            LimitReached: too many rows, or too much under way or stored; nothing was done.
        """
        language = by.language or translation.get_language() or settings.LANGUAGE_CODE
        filters_zone = filters_zone or by.zone.key
        with translation.override(language), timezone.override(ZoneInfo(filters_zone)):
            ticket_filter = TicketFilter(filters, by)
            if ticket_filter.errors:
                raise ValidationError(ticket_filter.complaints())
            chosen_columns = csv_columns.chosen(columns, row_kind)
            shown = ticket_filter.describe()
            self.refuse_rows(ticket_filter.queryset(), row_kind, announced_rows)
        dedup_key = None
        if key:
            of_the_file = [row_kind, file_format, delimiter, time_zone]
            chosen = json.dumps([ticket_filter.query, chosen_columns, of_the_file], sort_keys=True)
            dedup_key = f"export:{by.pk}:{key}:{hashlib.sha256(chosen.encode()).hexdigest()[:16]}"
        self.lock_person(by)
        # The payload is empty: the export's id is the task's.
        task = BackgroundTask.objects.enqueue("EXPORT", owner=by, dedup_key=dedup_key)
        under_way = self.filter(pk=task.pk).first()
        if under_way:
            return under_way
        self.refuse_more_of(by, besides=1)
        return self.create(
            task=task,
            requester=by,
            filters=ticket_filter.query,
            filters_shown=[[str(label), str(value)] for label, value in shown],
            columns=chosen_columns,
            row_kind=row_kind,
            file_format=file_format,
            delimiter=delimiter,
            time_zone=time_zone or by.zone.key,
            filters_zone=filters_zone,
            language=language,
            announced_rows=announced_rows,
        )
