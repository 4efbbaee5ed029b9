"""What a person may choose of a file, beside which tickets and columns."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class RowKind(models.TextChoices):
    TICKETS = "tickets", _("one ticket")
    CONVERSATION = "conversation", _("one message of a ticket's conversation")
    HISTORY = "history", _("one change in a ticket's history")


class FileFormat(models.TextChoices):
    CSV = "csv", _("CSV")
    CSV_GZ = "csv.gz", _("CSV, compressed")
    XLSX = "xlsx", _("Excel workbook")
    JSONL = "jsonl", _("JSON Lines")


class Delimiter(models.TextChoices):
    """Between the cells of a CSV file."""

    COMMA = ",", _("comma")
    SEMICOLON = ";", _("semicolon")
    TAB = "\t", _("tab")
