"""What people write, in every column of a conversation and a history where they write it."""

import csv

import pytest
from django.core.exceptions import ValidationError

from exports.models import Export, RowKind
from tests.exports.conftest import content_of, records_of
from tickets.models import EventKind, Ticket, TicketEvent

pytestmark = pytest.mark.django_db(transaction=True)

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠A1"]
FORMULAS += ["  =1+1", "\ufeff=1", " \u200b@x", "\u3000－1"]
HARMLESS = [
    'say "hello", twice; or\tnot',
    "line\nfeed and\r\nboth",
    "工单：打印机 🔥 ﷽ e\u0301",
    "שלום \u202eabc\u202c عليكم",
    "👩‍👩‍👧‍👦",
    "1 -1",
    "5-4",
    "'=1",
    "\\N",
    "\\.",
    '"',
]


@pytest.fixture
def long_cells():
    """Python's reader takes no cell above 128 KiB unless it is told to."""
    limit = csv.field_size_limit(10_000_000)
    yield
    csv.field_size_limit(limit)


def exported(run, person, columns, row_kind) -> Export:
    return run(Export.objects.request(person, {"sort": "id"}, columns, row_kind=row_kind))


@pytest.mark.parametrize("text", [*FORMULAS, *HARMLESS])
def test_a_message_is_told_as_it_is_and_never_run(alice, ticket, support, run, text):
    support.name = text
    support.save()
    talked_about = ticket(text, tags=[text], requester_name=text)
    talked_about.comments.create(author_text=text, body=text)
    alice.first_name, alice.last_name = text, "Ames"
    alice.save()
    talked_about.comments.create(author=alice, author_text="as it was", body="plain")
    columns = ["team", "subject", "requester_name", "tags", "author", "text"]
    first, second = records_of(exported(run, alice, columns, RowKind.CONVERSATION))
    told = f"'{text}" if text in FORMULAS else text
    assert first == dict.fromkeys(columns, told)
    assert second["text"] == "plain"
    guard = "'" if text in FORMULAS else ""
    assert second["author"].strip() in {f"{guard}{text} Ames", f"{guard}{alice.display_name}"}


@pytest.mark.parametrize("text", [*FORMULAS, *HARMLESS])
def test_a_change_is_told_as_it_is_and_never_run(alice, ticket, run, text):
    TicketEvent.objects.create(
        ticket=ticket(text),
        kind=EventKind.CHANGED,
        field="subject",
        actor_text=text,
        reason=text,
        old_text=text,
        new_text=text,
        version=2,
    )
    columns = ["subject", "actor", "before", "after", "reason"]
    (record,) = records_of(exported(run, alice, columns, RowKind.HISTORY))
    assert record == dict.fromkeys(columns, f"'{text}" if text in FORMULAS else text)


@pytest.mark.parametrize("start", ["x", "=", "工"])
def test_a_megabyte_of_text_comes_whole(alice, support, run, long_cells, start):
    text = start + "ü 🔥\n" * 130_000
    ticket = Ticket.objects.open(by=alice, team=support, subject="Long")
    ticket.edit(by=alice, changes={"description": text})
    ticket.comment(by=alice, body=text)
    assert len(text.encode()) > 1_000_000
    told = ("'" if start == "=" else "") + text.strip()
    (message,) = records_of(exported(run, alice, ["description", "text"], RowKind.CONVERSATION))
    assert message == {"description": told, "text": told}
    history = exported(run, alice, ["after"], RowKind.HISTORY)
    assert [record["after"] for record in records_of(history)] == ["Long", told, told]
    assert content_of(history).count(b"\xef\xbb\xbf") == 1


def test_a_null_character_is_refused_before_any_file_could_have_it(alice, support):
    ticket = Ticket.objects.open(by=alice, team=support, subject="Printer")
    with pytest.raises(ValidationError, match="Null characters"):
        ticket.comment(by=alice, body="nul\0nul")
    with pytest.raises(ValidationError, match="Null characters"):
        ticket.edit(by=alice, changes={"subject": "nul\0nul"})
    assert ticket.comments.count() == 0
