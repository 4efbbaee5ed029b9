"""Exports as the tests ask for them, run them and read them back."""

import csv
import io

import pytest
from django.db.models.functions import Now
from django.utils import translation

from exports.models import Export, ExportChunk
from exports.rows import rows_of
from exports.snapshot import Snapshot
from tasks.lease import Lease
from tasks.models import BackgroundTask
from tasks.worker import run_job
from tickets.filters import TicketFilter
from tickets.models import Ticket


@pytest.fixture(autouse=True)
def _own_language():
    """A request's language stays active in its thread after it: not for the next test."""
    with translation.override("en"):
        yield


@pytest.fixture
def after_the_count(monkeypatch):
    """``after_the_count(action)``: it happens when the rows are counted and none is read yet."""

    def arrange(action):
        count_by = Snapshot.count_by

        def count_then_act(self, *args):
            counted = count_by(self, *args)
            action()
            return counted

        monkeypatch.setattr(Snapshot, "count_by", count_then_act)

    return arrange


@pytest.fixture
def chinese(client, alice):
    """alice's browser, who chose Chinese."""
    alice.language = "zh-hans"
    alice.save()
    client.force_login(alice)
    return client


@pytest.fixture
def ticket(transactional_db, alice, support):
    """``ticket("subject", **fields)``: stored as it is, without the verbs' events and reminders."""

    def create(subject="Printer on fire", **fields):
        fields = {"team": support, "creator": alice} | fields
        return Ticket.objects.create(subject=subject, **fields)

    return create


@pytest.fixture
def run():
    """``run(export)``: one attempt, as a worker makes it. Returns the export as it is then."""

    def run_one_attempt(export):
        run_job(export.pk, export.task.run)
        return reloaded(export)

    return run_one_attempt


@pytest.fixture
def stored(transactional_db, alice, support):
    """``stored(b"one", b"two")``: alice's completed export, whose file is in these chunks. Choices
    are those of ``Export.objects.request``."""

    def complete(*pieces: bytes, filters=None, **choices):
        export = Export.objects.request(alice, filters or {}, ["id"], **choices)
        lease = Lease.claim(export.pk, export.task.run)
        size = store(export, lease.execution_id, pieces)
        result = {"rows": 1, "size": size, "team_ids": [support.pk]}
        lease.complete(
            lambda: Export.objects.filter(pk=export.pk).update(
                **result, execution_id=lease.execution_id
            )
        )
        return reloaded(export)

    return complete


def store(export, execution_id, pieces) -> int:
    """Adds these chunks, as a worker does. Returns how many bytes they are."""
    size = 0
    for piece in pieces:
        ExportChunk.objects.store(export, execution_id, size, piece)
        size += len(piece)
    return size


def file_url(export) -> str:
    return f"/exports/{export.pk}/download/"


def reloaded(export) -> Export:
    return Export.objects.with_state().get(pk=export.pk)


def content_of(export) -> bytes:
    return b"".join(export.content())


def table_of(export) -> list[list[str]]:
    """The file's rows as Python's csv module reads them; the first is the header."""
    text = content_of(export).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def records_of(export) -> list[dict[str, str]]:
    """Rows by column key."""
    return [dict(zip(export.columns, row, strict=True)) for row in table_of(export)[1:]]


def aged(export, **ages):
    """``aged(export, expires_at=timedelta(hours=-1))``: moves the task's times from now."""
    moments = {name: Now() + age for name, age in ages.items()}
    BackgroundTask.objects.filter(pk=export.pk).update(**moments)
    return reloaded(export)


def rows_offered(person, filters, row_kind: str) -> int:
    """How many rows the page of a new export says that its file would have."""
    return rows_of(TicketFilter(filters, person).queryset(), row_kind).count()
