"""A mapping file: which column of a source becomes which field of a ticket."""

import re
import tomllib
import zoneinfo
from datetime import datetime
from pathlib import Path

from django.core.exceptions import ValidationError
from django.utils import timezone

from tickets.models import ImportedComment, ImportedTicket, TicketPriority, TicketStatus

DEFAULT = Path(__file__).resolve().parent.parent / "mappings" / "customer_support.toml"

_TIMES = ("due_at", "created_at", "first_responded_at", "resolved_at", "closed_at")
_WORDS = {"status": TicketStatus, "priority": TicketPriority}
_TEXTS = ("external_id", "subject", "description", "requester_name", "requester_email")
_KEYS = {"time_zone", "comment_author", "tags", "comments", "columns", "values"}
_NO_WORD = re.compile(r"[^\w]+")


class MappingError(Exception):
    """The mapping file cannot be used; the text says why."""


class RowError(Exception):
    """This row cannot become a ticket; the text says why."""


class Mapping:
    """Raises MappingError unless ``settings``, the parsed file, make sense."""

    def __init__(self, settings: dict):
        unknown = set(settings) - _KEYS
        if unknown:
            raise MappingError(f"unknown keys: {_listed(unknown)}; known: {_listed(_KEYS)}")
        self.columns = _table_of_texts(settings, "columns")
        self.comments = _table_of_texts(settings, "comments")
        self.tags = settings.get("tags", [])
        self.author = settings.get("comment_author", "imported")
        if not isinstance(self.tags, list) or not all(isinstance(tag, str) for tag in self.tags):
            raise MappingError("tags must be a list of column names")
        if not isinstance(self.author, str):
            raise MappingError("comment_author must be a text")
        fields = set(_TEXTS) | set(_WORDS) | set(_TIMES)
        if set(self.columns) - fields:
            wrong = _listed(set(self.columns) - fields)
            raise MappingError(f"unknown fields in [columns]: {wrong}; known: {_listed(fields)}")
        for field in ("external_id", "subject"):
            if field not in self.columns:
                raise MappingError(f"[columns] must say which column is {field}")
        self.words = {field: self._words(settings, field) for field in _WORDS}
        self.zone = _zone(settings.get("time_zone", "UTC"))

    @classmethod
    def load(cls, path: Path | str = DEFAULT) -> "Mapping":
        try:
            return cls(tomllib.loads(Path(path).read_text("utf-8")))
        except OSError as error:
            raise MappingError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, MappingError) as error:
            raise MappingError(f"{path}: {error}") from error

    def _words(self, settings: dict, field: str) -> dict[str, str]:
        values = settings.get("values", {})
        if not isinstance(values, dict) or set(values) - set(_WORDS):
            raise MappingError(f"[values] has tables for {_listed(_WORDS)} only")
        words = _table_of_texts(values, field)
        wrong = set(words.values()) - set(_WORDS[field].values)
        if wrong:
            known = _listed(_WORDS[field].values)
            raise MappingError(f"[values.{field}] names {_listed(wrong)}; known: {known}")
        # Without a table the source is expected to use our words.
        words = words or {value: value for value in _WORDS[field].values}
        return {word.strip().casefold(): value for word, value in words.items()}

    # Questions

    @property
    def needed_columns(self) -> list[str]:
        times = [column for column in self.comments.values() if column]
        return list(dict.fromkeys([*self.columns.values(), *self.tags, *self.comments, *times]))

    def ticket_of(self, row: dict[str, str]) -> ImportedTicket:
        """Raises RowError."""
        fields = {}
        for field, column in self.columns.items():
            cell = row[column].strip()
            if field in _TIMES:
                fields[field] = self._time(column, cell)
            elif field in _WORDS:
                fields[field] = self._word(field, column, cell)
            else:
                fields[field] = cell
        try:
            return ImportedTicket(
                **fields,
                tags=[tag for column in self.tags if (tag := as_tag(row[column]))],
                comments=[
                    ImportedComment(row[column], self.author, self._time(at, row.get(at, "")))
                    for column, at in self.comments.items()
                    if row[column].strip()
                ],
            )
        except ValidationError as error:
            raise RowError("; ".join(self._told(error))) from error

    def _told(self, error: ValidationError) -> list[str]:
        return [
            f"{self.columns.get(field, field)}: {' '.join(texts)}"
            for field, texts in error.message_dict.items()
        ]

    def _word(self, field: str, column: str, cell: str) -> str:
        try:
            return self.words[field][cell.casefold()]
        except KeyError:
            known = _listed(self.words[field])
            raise RowError(f"{column}: “{cell[:50]}” is not in the mapping ({known})") from None

    def _time(self, column: str, cell: str) -> datetime | None:
        cell = cell.strip()
        if not cell:
            return None
        try:
            found = datetime.fromisoformat(cell)
        except ValueError:
            found = None
        # Outside these years a conversion between time zones can overflow.
        if found is None or not 1970 < found.year < 3000:
            raise RowError(f"{column}: “{cell[:50]}” is not a time like 2026-05-31 14:00:00")
        return timezone.make_aware(found, self.zone) if timezone.is_naive(found) else found


def as_tag(cell: str) -> str:
    """``Social media`` → ``social-media``: readable, and one word in any list of tags."""
    return _NO_WORD.sub("-", cell.strip().casefold()).strip("-")[:50].rstrip("-")


def _table_of_texts(settings: dict, name: str) -> dict[str, str]:
    table = settings.get(name, {})
    if not isinstance(table, dict) or not all(isinstance(each, str) for each in table.values()):
        raise MappingError(f"[{name}] must be a table of texts")
    return table


def _zone(name) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise MappingError(f"time_zone: {name!r} is not a known time zone") from None


def _listed(names) -> str:
    return ", ".join(sorted(str(name) or "(empty)" for name in names))
