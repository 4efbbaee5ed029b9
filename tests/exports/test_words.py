"""The words in the file are those of the pages, in the language of who asked for it."""

import re

import pytest
from django.utils import translation
from django.utils.text import capfirst

from exports.models import Export, RowKind
from tests.exports.conftest import records_of, table_of
from tests.visible import VisibleTexts
from tickets.models import EventKind, Ticket, TicketEvent, TicketPriority, TicketStatus
from tickets.models.editable import EDITABLE
from tickets.models.editing import NOT_IN_NEW_TEAM
from tickets.models.ticket_event import IMPORT_RULE, REMINDER_RULE

pytestmark = pytest.mark.django_db(transaction=True)
in_both_languages = pytest.mark.parametrize("language", ["en", "zh-hans"])


@pytest.fixture
def reader(alice, language):
    alice.language = language
    alice.save()
    return alice


def exported(run, person, columns, row_kind=RowKind.TICKETS) -> Export:
    return run(Export.objects.request(person, {"sort": "id"}, columns, row_kind=row_kind))


def texts_of(client, person, url) -> list[str]:
    client.force_login(person)
    answer = client.get(url)
    assert answer.status_code == 200
    return [text.strip() for text in VisibleTexts(answer.content.decode()).texts]


@in_both_languages
def test_statuses_and_priorities_are_labelled_as_in_the_list(client, run, ticket, reader, language):
    for status, priority in zip(TicketStatus, [*TicketPriority, "low"], strict=True):
        ticket(status=status, priority=priority)
    shown = texts_of(client, reader, "/tickets/?sort=id")
    records = records_of(exported(run, reader, ["status", "priority"]))
    with translation.override(language):
        assert [record["status"] for record in records] == [str(s.label) for s in TicketStatus]
    for record in records:
        # The list begins them with a capital letter, where the language has one.
        assert capfirst(record["status"]) in shown
        assert capfirst(record["priority"]) in shown


@in_both_languages
def test_titles_are_translated(client, run, ticket, reader, language):
    ticket()
    (header, _) = table_of(exported(run, reader, ["status", "priority", "assignee", "team"]))
    shown = texts_of(client, reader, "/tickets/")
    assert set(header) <= set(shown)
    assert (header[1] == "Status") == (language == "en")


@in_both_languages
def test_the_kinds_of_messages_are_those_of_the_page(client, run, reader, support, language):
    ticket = Ticket.objects.open(by=reader, team=support, subject="Printer")
    ticket.comment(by=reader, body="Hello")
    ticket.comment(by=reader, body="Psst", is_public=False)
    shown = texts_of(client, reader, f"/tickets/{ticket.pk}/")
    records = records_of(exported(run, reader, ["visibility", "text"], RowKind.CONVERSATION))
    assert [record["text"] for record in records] == ["Hello", "Psst"]
    with translation.override(language):
        words = [translation.gettext("Reply"), translation.gettext("Internal note")]
    assert [record["visibility"] for record in records] == words
    assert set(words) <= set(shown)
    history = records_of(exported(run, reader, ["what", "after"], RowKind.HISTORY))
    assert [record["what"] for record in history][1:] == words


@in_both_languages
def test_changes_are_told_in_the_words_of_the_page(client, run, reader, support, language):
    ticket = Ticket.objects.open(by=reader, team=support, subject="Printer")
    for rule in (REMINDER_RULE, NOT_IN_NEW_TEAM):
        ticket.set_status("on_hold", by=None, reason=rule)
        ticket.set_status("open", by=None, reason=rule)
    everything = {
        "priority": "urgent",
        "assignee": reader,
        "tags": ["a", "b"],
        "requester_name": "Rita",
        "requester_email": "rita@example.org",
        "description": "It burns.",
        "subject": "Fire",
    }
    ticket.edit(by=reader, changes=everything)
    imported = TicketEvent.by(None, IMPORT_RULE) | {"kind": EventKind.IMPORTED, "version": 1}
    TicketEvent.objects.create(ticket=ticket, new_text="Printer", **imported)
    client.force_login(reader)
    answer = client.get(f"/tickets/{ticket.pk}/")
    page = re.sub(r"\s+", " ", " ".join(VisibleTexts(answer.content.decode()).texts))
    events = list(ticket.events.order_by("at", "id").select_related("actor"))
    assert {event.field for event in events} >= set(everything)

    columns = ["actor", "what", "field", "before", "after", "reason"]
    records = records_of(exported(run, reader, columns, RowKind.HISTORY))
    with translation.override(language):
        system = translation.gettext("System")
        assert [list(record.values()) for record in records] == [
            [
                event.actor.display_name if event.actor else system,
                what_of(event),
                event.field_display,
                event.old_display,
                event.new_display,
                event.reason_display,
            ]
            for event in events
        ]
    for record in records:
        for key in ("actor", "field", "before", "reason"):
            assert record[key] in page, key
        if record["field"]:
            assert record["after"] in page
        else:
            assert record["what"] in page
    if language != "en":
        english = " ".join(cell for record in records for cell in record.values())
        for word in ("on hold", "urgent", "System", "opened", "imported", "status", "due date"):
            assert word not in english


def what_of(event) -> str:
    if event.kind == EventKind.CREATED:
        return translation.gettext("opened the ticket")
    if event.kind == EventKind.IMPORTED:
        return translation.gettext("imported the ticket")
    return str(event.get_kind_display())


def test_every_field_that_has_a_history_has_a_name_in_the_file(alice, ticket, run):
    """And no kind of event is left without words."""
    changed = ticket()
    for name in EDITABLE:
        TicketEvent.objects.create(
            ticket=changed, kind=EventKind.CHANGED, field=name, version=1, new_text="x"
        )
    for kind in EventKind:
        TicketEvent.objects.create(ticket=changed, kind=kind, version=1)
    records = records_of(exported(run, alice, ["what", "field", "after"], RowKind.HISTORY))
    fields = [Ticket._meta.get_field(name).verbose_name for name in EDITABLE]
    assert [record["field"] for record in records] == [*fields, *[""] * len(EventKind)]
    assert all(record["what"] for record in records)


def test_history_stays_true_when_people_are_renamed_or_deleted(alice, bob, support, run):
    ticket = Ticket.objects.open(by=alice, team=support, subject="Printer")
    ticket.assign(bob, by=bob)
    ticket.comment(by=bob, body="Mine")
    name = bob.display_name
    bob.delete()
    columns = ["actor", "after"]
    history = records_of(exported(run, alice, columns, RowKind.HISTORY))
    assert history[1:] == [{"actor": name, "after": name}, {"actor": name, "after": "Mine"}]
    conversation = records_of(exported(run, alice, ["author"], RowKind.CONVERSATION))
    assert conversation == [{"author": name}]


@pytest.mark.parametrize("value", ["no time at all", 12, ["a"], {"at": 1}, None, "2026-13-45"])
def test_a_value_of_history_that_is_no_time_is_told_as_it_was(alice, ticket, run, value):
    """One odd row must not cost the whole file."""
    TicketEvent.objects.create(
        ticket=ticket(),
        kind=EventKind.CHANGED,
        field="due_at",
        new_value=value,
        new_text="as it was",
        version=1,
    )
    records = records_of(exported(run, alice, ["after"], RowKind.HISTORY))
    assert records == [{"after": "as it was"}]
