"""JSON Lines: for programs, whatever the language and the zone of who asks."""

from datetime import UTC, datetime

import pytest

from tests.exports.conftest import content_of
from tests.exports.formats.reading import objects_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_line_is_one_object_with_real_types(alice, ticket, asked, run):
    stored = ticket("=1+1", tags=["a", "=b"], status="on_hold", creator=None)
    export = run(asked(alice, "jsonl", ["id", "subject", "status", "creator", "tags", "due_at"]))
    assert content_of(export).decode() == (
        f'{{"id":{stored.pk},"subject":"=1+1","status":"on_hold","creator":null,'
        '"tags":["a","=b"],"due_at":null}\n'
    )


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), "2026-03-29T01:59:59+01:00"),
        (datetime(2026, 3, 29, 1, 0, 0, tzinfo=UTC), "2026-03-29T03:00:00+02:00"),
        (datetime(2026, 10, 25, 0, 30, 0, tzinfo=UTC), "2026-10-25T02:30:00+02:00"),
        (datetime(2026, 10, 25, 1, 30, 0, tzinfo=UTC), "2026-10-25T02:30:00+01:00"),
        (datetime(2026, 10, 25, 1, 30, 0, 1000, tzinfo=UTC), "2026-10-25T02:30:00.001+01:00"),
    ],
)
def test_times_have_the_offset_of_that_day(alice, ticket, asked, run, moment, shown):
    ticket(due_at=moment)
    export = run(asked(alice, "jsonl", ["due_at"], time_zone="Europe/Berlin"))
    assert objects_of(export) == [{"due_at": shown}]


def test_keys_and_values_do_not_depend_on_the_language(alice, ticket, asked, run):
    alice.language = "zh-hans"
    alice.save()
    ticket(status="on_hold", priority="urgent")
    export = run(asked(alice, "jsonl", ["status", "priority"]))
    assert objects_of(export) == [{"status": "on_hold", "priority": "urgent"}]


def test_the_lists_order_is_kept(alice, ticket, asked, run):
    for subject in ("b", "C", "a"):
        ticket(subject)
    export = run(asked(alice, "jsonl", ["subject"], {"sort": "-subject"}))
    assert [line["subject"] for line in objects_of(export)] == ["C", "b", "a"]


def test_a_line_is_never_torn_by_what_is_in_it(alice, ticket, asked, run, monkeypatch):
    monkeypatch.setattr("exports.jobs.CHUNK_BYTES", 300)
    controls = "".join(map(chr, range(1, 32))) + '"\\\u2028\u2029\x85\x7f'
    ticket(description=controls * 1_000)
    ticket(description="x" * 1_000_000)
    export = run(asked(alice, "jsonl", ["description"]))
    assert [line["description"] for line in objects_of(export)] == [
        controls * 1_000,
        "x" * 1_000_000,
    ]
    assert export.chunks.count() == 2
