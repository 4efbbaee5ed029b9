"""Two people edit the same ticket: nothing is lost, and what both changed is shown side by side."""

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction

from tickets.models import Ticket


@pytest.fixture
def mine(ticket):
    """The ticket as I loaded it, before alice's change."""
    return Ticket.objects.get(pk=ticket.pk)


def form_of(ticket, **changes):
    """A form posts every field, changed or not."""
    fields = ("subject", "description", "status", "priority", "assignee", "tags", "due_at", "team")
    return {name: getattr(ticket, name) for name in fields} | changes


def test_fields_that_only_i_changed_are_saved(ticket, mine, alice, bob):
    posted = form_of(mine, priority="urgent")
    ticket.edit(by=alice, changes={"subject": "Hers"})
    edit = mine.edit(by=bob, changes=posted, version=1)
    assert (edit.saved, edit.conflicts) == ({"priority": "urgent"}, [])
    stored = Ticket.objects.get(pk=ticket.pk)
    assert (stored.subject, stored.priority, stored.version) == ("Hers", "urgent", 3)


def test_a_field_both_changed_is_a_conflict_and_the_rest_is_saved(ticket, mine, alice, bob):
    posted = form_of(mine, subject="Mine", priority="urgent")
    ticket.edit(by=alice, changes={"subject": "Hers"})
    edit = mine.edit(by=bob, changes=posted, version=1)
    assert edit.saved == {"priority": "urgent"}
    [conflict] = edit.conflicts
    assert (conflict.field, conflict.mine, conflict.theirs) == ("subject", "Mine", "Hers")
    assert Ticket.objects.get(pk=ticket.pk).subject == "Hers"


def test_the_same_change_by_both_is_no_conflict(ticket, mine, alice, bob):
    posted = form_of(mine, subject="Same")
    ticket.edit(by=alice, changes={"subject": "Same"})
    edit = mine.edit(by=bob, changes=posted, version=1)
    assert (edit.saved, edit.conflicts) == ({}, [])


def test_a_change_that_was_taken_back_is_no_conflict(ticket, mine, alice, bob):
    posted = form_of(mine, subject="Mine")
    ticket.edit(by=alice, changes={"subject": "Hers"})
    ticket.edit(by=alice, changes={"subject": "Printer"})
    edit = mine.edit(by=bob, changes=posted, version=1)
    assert edit.saved == {"subject": "Mine"}


def test_the_base_is_what_i_saw_however_often_it_changed_since(ticket, mine, alice, bob):
    posted = form_of(mine, priority="high")
    for subject in ("One", "Two", "Three"):
        ticket.edit(by=alice, changes={"subject": subject})
    edit = mine.edit(by=bob, changes=posted, version=1)
    assert edit.saved == {"priority": "high"}, "the old subject in my form is no change of mine"
    assert edit.conflicts == []


def test_only_changes_after_my_version_count(ticket, alice, bob):
    ticket.edit(by=alice, changes={"subject": "Before"})
    seen = Ticket.objects.get(pk=ticket.pk)
    ticket.edit(by=alice, changes={"priority": "low"})
    edit = seen.edit(by=bob, changes={"subject": "Mine"}, version=seen.version)
    assert (edit.saved, edit.conflicts) == ({"subject": "Mine"}, [])


def test_without_a_version_the_last_one_wins(ticket, mine, alice, bob):
    ticket.edit(by=alice, changes={"subject": "Hers"})
    assert mine.edit(by=bob, changes={"subject": "Mine"}).saved == {"subject": "Mine"}


def test_assignee_due_date_and_tags_are_compared_by_value(ticket, mine, alice, bob, tomorrow):
    posted = form_of(mine, assignee=bob, tags=["mine"], due_at=None)
    ticket.edit(by=alice, changes={"assignee": alice, "tags": ["hers"], "due_at": tomorrow})
    edit = mine.edit(by=bob, changes=posted, version=1)
    assert edit.saved == {}
    texts = {c.field: (c.mine_text, c.theirs_text) for c in edit.conflicts}
    assert texts == {"assignee": ("Bob Berg", "Alice Ames"), "tags": ("mine", "hers")}


def test_a_comment_is_in_nobodys_way(ticket, mine, alice, bob):
    ticket.comment(by=alice, body="Looking into it")
    assert mine.edit(by=bob, changes={"subject": "Mine"}, version=1).saved == {"subject": "Mine"}


@pytest.mark.parametrize("version", [0, -1, 2, 99, "x", "", "1.5", True, 10**30, "9" * 5000])
def test_a_version_that_never_was_is_refused(ticket, bob, version):
    with pytest.raises(ValidationError) as refusal:
        ticket.edit(by=bob, changes={"subject": "Mine"}, version=version)
    assert list(refusal.value.message_dict) == ["version"]
    assert Ticket.objects.get(pk=ticket.pk).subject == "Printer"


def test_a_version_may_come_as_text_from_a_form(ticket, bob):
    assert ticket.edit(by=bob, changes={"subject": "Mine"}, version="1").saved


@pytest.mark.django_db(transaction=True)
def test_two_who_save_at_the_same_moment_lose_nothing(ticket, mine, alice, bob, other, wait_until):
    hers = form_of(ticket, subject="Hers", tags=["hers"])
    my = form_of(mine, subject="Mine", priority="urgent")
    with transaction.atomic():
        ticket.edit(by=alice, changes=hers, version=1)
        second = other(lambda: mine.edit(by=bob, changes=my, version=1))
        wait_until(second.is_blocked, "bob's save waits for alice's commit")
    edit = second.result()
    assert edit.saved == {"priority": "urgent"}
    assert [(c.field, c.mine, c.theirs) for c in edit.conflicts] == [("subject", "Mine", "Hers")]
    stored = Ticket.objects.get(pk=ticket.pk)
    assert (stored.subject, stored.tags, stored.priority) == ("Hers", ["hers"], "urgent")
