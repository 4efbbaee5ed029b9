"""What a person may choose of a file, beside which tickets and columns."""

from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class RowKind(models.TextChoices):
    TICKETS = "tickets", _("one ticket")
    CONVERSATION = "conversation", _("one message of a ticket's conversation")
    HISTORY = "history", _("one change in a ticket's history")

    @property
    def sheet_name(self) -> str:
        """Of a workbook's sheet, in the active language."""
        names = {
            RowKind.TICKETS: gettext("Tickets"),
            RowKind.CONVERSATION: gettext("Conversation"),
            RowKind.HISTORY: gettext("Changes"),  # Excel keeps "History" for itself
        }
        return names[self]


class FileFormat(models.TextChoices):
    CSV = "csv", _("CSV")
    CSV_GZ = "csv.gz", _("CSV, compressed")
    XLSX = "xlsx", _("Excel workbook")
    JSONL = "jsonl", _("JSON Lines")

    @property
    def extension(self) -> str:
        """Of the file's name: ``.csv.gz``."""
        return f".{self.value}"

    @property
    def has_delimiter(self) -> bool:
        return self in (FileFormat.CSV, FileFormat.CSV_GZ)

    @property
    def content_type(self) -> str:
        return _CONTENT_TYPES[self]


_CONTENT_TYPES = {
    FileFormat.CSV: "text/csv; charset=utf-8",
    # A compressed file and no Content-Encoding, which browsers would take off as they save it.
    FileFormat.CSV_GZ: "application/gzip",
    FileFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    FileFormat.JSONL: "application/jsonl",
}


class Delimiter(models.TextChoices):
    """Between the cells of a CSV file."""

    COMMA = ",", _("comma")
    SEMICOLON = ";", _("semicolon")
    TAB = "\t", _("tab")
