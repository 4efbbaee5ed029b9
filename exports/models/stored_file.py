"""The file of a completed export: what it is called, and its bytes."""

import unicodedata
from collections.abc import Iterator
from datetime import date
from zoneinfo import ZoneInfo

from django.utils import translation
from django.utils.translation import gettext

from tickets.filter_form import TicketFilterForm
from tickets.models import Team
from tickets.quick_views import quick_views

from .choices import RowKind
from .chunk import ExportChunk

# Most file systems take names of at most 255 bytes; with kind, day and extension these two stay
# below that.
TEAM_BYTES = 80
VIEW_BYTES = 100
# Filters whose value says enough; of "Overdue: yes" the label does, of all others both are needed.
SAID_BY_VALUE = {"q", "status", "priority", "team", "tags", "requester"}
REFUSED_BY_FILE_SYSTEMS = set('\\/:*?"<>|')
# Controls, and signs that are not seen: one of them turns the text around, so that a name ends in
# ".csv" for the eye alone.
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
JOINS_EMOJI = "\u200d"


class StoredFile:
    """Capability of Export: the completed result as a file."""

    @property
    def etag(self) -> str:
        """Strong (RFC 9110, 8.8.1): the bytes of one execution never change."""
        return f'"{self.execution_id.hex}-{self.size}"'

    def content(self, part: range | None = None) -> Iterator[bytes]:
        """The stored bytes, or those at the positions of ``part``; one chunk in memory at a time.

        Holds no transaction and no cursor between two chunks: a reader may be slow, or go away.

        Raises:
            ExportChunk.DoesNotExist: it was purged meanwhile. The reader must not take what came
                so far for the whole.
        """
        position, stop = (0, self.size) if part is None else (part.start, part.stop)
        # Of one execution to the end, whatever becomes of the row meanwhile.
        execution_id = self.execution_id
        while position < stop:
            piece = ExportChunk.objects.read(self.pk, execution_id, position, stop - position)
            position += len(piece)
            yield piece

    def file_name(self) -> str:
        """``tickets-Support-Overdue-2026-12-01.csv``: what each row is, the team if it is one, what
        the filters select in few words, and the day it was made, in the requester's zone and
        language. At most 255 bytes of UTF-8."""
        made_on = self.task.finished_at.astimezone(ZoneInfo(self.time_zone)).date()
        teams = Team.objects.filter(pk__in=self.team_ids).values_list("name", flat=True)
        team = teams[0] if len(self.team_ids) == 1 and teams else ""
        with translation.override(self.language):
            words = [
                self._rows_are(),
                _cut(_safe(team), TEAM_BYTES),
                _cut(_safe(self._view(bool(team))), VIEW_BYTES),
                made_on.isoformat(),
            ]
        return "-".join(filter(None, words)) + self.extension

    def _rows_are(self) -> str:
        return {
            RowKind.TICKETS: gettext("tickets"),
            RowKind.CONVERSATION: gettext("conversations"),
            RowKind.HISTORY: gettext("history"),
        }[RowKind(self.row_kind)]

    def _view(self, team_is_said: bool) -> str:
        """The quick view's name, or else what the filters say."""
        said_elsewhere = {"sort", "team"} if team_is_said else {"sort"}
        query = {name: what for name, what in self.filters.items() if name not in said_elsewhere}
        if not query:
            return ""
        for view in [*quick_views(), *quick_views(self._requested_on())]:
            if view.query == query:
                return view.label
        names = {str(field.label): name for name, field in TicketFilterForm.base_fields.items()}
        words = []
        for label, value in self.filters_shown:
            name = names.get(label)
            if name == "overdue":
                words.append(label)
            elif name not in said_elsewhere:
                words.append(value if name in SAID_BY_VALUE else f"{label} {value}")
        return "-".join(words)

    def _requested_on(self) -> date:
        """As the requester's calendar had it: what "today" meant."""
        return self.created_at.astimezone(ZoneInfo(self.filters_zone)).date()


def _safe(text: str) -> str:
    """Without what file systems refuse, and browsers would replace each in its own way."""
    kept = "".join(
        "-" if sign in REFUSED_BY_FILE_SYSTEMS or _is_unseen(sign) else sign for sign in text
    )
    words = (" ".join(word.split()) for word in kept.split("-"))
    return "-".join(filter(None, words)).strip(" .-")


def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in UNSEEN and sign != JOINS_EMOJI


def _cut(text: str, size: int) -> str:
    """At most ``size`` bytes of it, in whole characters and, where they are short, whole words."""
    if len(text.encode()) <= size:
        return text
    begin = text.encode()[: size - len("…".encode())].decode(errors="ignore")
    words, blank, _ = begin.rpartition(" ")
    if blank and len(words) > len(begin) // 2:
        begin = words
    return begin.rstrip(f" ,.-{JOINS_EMOJI}") + "…"
