"""``manage.py import_tickets FILE --team SLUG``: tickets of another system, out of a text file."""

import argparse
import os
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseFault
from tqdm import tqdm

from tickets.importing.mapping import DEFAULT, Mapping, MappingError, RowError
from tickets.importing.source import Source, SourceError
from tickets.models import ImportedTicket, Team, Ticket

BATCH = 500


class Command(BaseCommand):
    help = (
        "Import tickets from a delimited text file. A ticket the team already has, by its external "
        "id, is left alone, so the command can be repeated. Rows that cannot be imported are named "
        "on stderr with their line, and the others go in. Exit status: 0 the file was read to its "
        "end, whatever its rows were worth; 1 it could not be, and the reason is on stderr."
    )

    def add_arguments(self, parser):
        parser.add_argument("file", type=_path)
        parser.add_argument("--team", required=True, metavar="SLUG", help="which team gets them")
        parser.add_argument(
            "--mapping",
            type=_path,
            default=DEFAULT,
            help=f"TOML file: which column is what (default: tickets/mappings/{DEFAULT.name})",
        )
        parser.add_argument("--dry-run", action="store_true", help="check everything, add nothing")
        parser.add_argument(
            "--encoding", help="default: UTF-8, or what a byte order mark says; e.g. gb18030"
        )
        parser.add_argument(
            "--delimiter", default=",", metavar="C", help="one character, or “tab” (default: ,)"
        )

    def handle(self, *args, file, team, mapping, dry_run, encoding, delimiter, **options):
        team = _team(team)
        try:
            mapping = Mapping.load(mapping)
        except MappingError as error:
            raise CommandError(f"Mapping {error}") from error
        try:
            source = Source(file, mapping.needed_columns, _delimiter(delimiter), encoding)
        except SourceError as error:
            raise CommandError(f"{file}: {error}.") from error
        self.rows = self.added = self.existing = 0
        self.refused: list[str] = []
        try:
            self._import(source, mapping, team, dry_run)
        except DatabaseFault as error:
            raise CommandError(
                f"The database failed: {error}\n{self.added} tickets were imported before that and "
                "stay; run the command again for the rest."
            ) from error
        finally:
            _tell(self.stderr, *self.refused)
        self._report(dry_run)

    def _import(self, source: Source, mapping: Mapping, team: Team, dry_run: bool) -> None:
        batch: list[ImportedTicket] = []
        lines: dict[str, int] = {}
        # None: shown on a terminal only.
        with tqdm(total=source.total, unit=" rows", file=sys.stderr, disable=None) as bar:
            for row in source.rows():
                self.rows += 1
                try:
                    batch.append(_ticket(row, mapping, lines))
                except RowError as error:
                    self.refused.append(f"line {row.line}: {error}")
                if len(batch) == BATCH:
                    self._add(batch, team, dry_run)
                    batch = []
                bar.update()
            if batch:
                self._add(batch, team, dry_run)

    def _add(self, batch: list[ImportedTicket], team: Team, dry_run: bool) -> None:
        if dry_run:
            ids = [ticket.external_id for ticket in batch]
            added = len(batch) - len(Ticket.objects.existing_external_ids(team, ids))
        else:
            added = Ticket.objects.import_batch(team, batch)
        self.added += added
        self.existing += len(batch) - added

    def _report(self, dry_run: bool) -> None:
        _tell(
            self.stdout,
            f"{self.rows} rows: {self.added} {'would be ' if dry_run else ''}imported, "
            f"{self.existing} existed already, {len(self.refused)} could not be imported.",
        )


def _ticket(row, mapping: Mapping, lines: dict[str, int]) -> ImportedTicket:
    if row.error:
        raise RowError(row.error)
    ticket = mapping.ticket_of(row.cells)
    first = lines.setdefault(ticket.external_id, row.line)
    if first != row.line:
        raise RowError(f"the id “{ticket.external_id}” already appeared in line {first}")
    return ticket


def _tell(stream, *texts: str) -> None:
    """A reader that has left, as ``| head`` does, makes no failure of a finished import."""
    try:
        for text in texts:
            stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # Or Python would say so once more at its end, when it flushes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is missing")
    return Path(text)


def _team(slug: str) -> Team:
    team = Team.objects.filter(slug=slug.replace("\0", "")).first()
    if team is None:
        slugs = ", ".join(Team.objects.order_by("slug").values_list("slug", flat=True))
        raise CommandError(f"There is no team “{slug}”. Teams: {slugs or 'none yet'}.")
    return team


def _delimiter(text: str) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n ':
        raise CommandError(f"The delimiter is one character or “tab”, not {text!r}.")
    return text
