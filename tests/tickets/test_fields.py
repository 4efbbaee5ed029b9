"""Every field of a ticket that people change, in every place that needs to know of it.

Whoever adds one to ``EDITABLE`` and forgets a place is told by a test here that names the field.
"""

from datetime import UTC, datetime

import pytest
from django import forms
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model
from django.utils.html import escape

from tickets.admin.ticket_form import CHANGEABLE
from tickets.forms import TicketForm
from tickets.models import Team, Ticket
from tickets.models import editable as kinds
from tickets.models.editable import EDITABLE
from tickets.views import edit
from tickets.views.texts import value_text

NEW = "external_id"  # a column that people may not change: here they may


class FormWithNew(TicketForm):
    external_id = forms.CharField(label="External id", required=False)


@pytest.fixture(params=[*EDITABLE, NEW])
def name(request, monkeypatch):
    """Each field, and one that somebody has just added."""
    if request.param == NEW:
        monkeypatch.setitem(EDITABLE, NEW, kinds.Line(max_length=100))
        monkeypatch.setattr(edit, "TicketForm", FormWithNew)
    return request.param


@pytest.fixture
def person(alice, support):
    """Alice, who works in every team there is."""
    for slug in ("first", "second"):
        Team.objects.create(name=slug.title(), slug=slug).memberships.create(
            user=alice, role="agent"
        )
    return alice


@pytest.fixture
def values(name, person, bob):
    """Two values of the field that are not its default."""

    def two(kind):
        match type(kind):
            case kinds.Text | kinds.Line:
                return "one & only", "two"
            case kinds.Email:
                return "one@example.org", "two@example.org"
            case kinds.Choice:
                return kind.choices.values[-1], kind.choices.values[-2]
            case kinds.Tags:
                return ["one", "two"], ["three"]
            case kinds.Moment:
                moments = (datetime(2031, 5, day, 14, 30, 7, tzinfo=UTC) for day in (1, 2))
                return tuple(moments)
            case kinds.Person:
                return person, bob
            case kinds.OwnerTeam:
                return Team.objects.get(slug="first"), Team.objects.get(slug="second")
        pytest.fail(f"“{name}” is of a new sort: say here what it may be.")

    return two(EDITABLE[name])


@pytest.fixture
def opened(name, values, person, support):
    """The ticket that was opened with the first value."""
    fields = {"team": support, "subject": "Printer"} | {name: values[0]}
    return Ticket.objects.open(by=person, **fields)


def typed(value):
    """What a browser sends for the value."""
    match value:
        case Model():
            return value.pk
        case list():
            return ", ".join(value)
        case datetime():
            return value.isoformat()
    return value


@pytest.fixture
def sent(client, person):
    """``sent(ticket)``: what the form of the ticket's page would send, untouched."""
    client.force_login(person)

    def read(ticket):
        answer = client.get(f"/tickets/{ticket.pk}/edit/")
        form = answer.context["form"]
        fields = {field.html_name: field.value() for field in form}
        shown = {name for name in fields if f'name="{name}"' in answer.content.decode()}
        return {name: fields[name] for name in shown if fields[name] is not None}

    return read


def test_opening_stores_it(name, values, opened):
    assert getattr(Ticket.objects.get(), name) == values[0]


def test_the_form_shows_it_and_untouched_leaves_it_as_it_is(name, values, opened, sent, client):
    fields = sent(opened)
    assert fields[name], "the form shows the value"
    assert client.post(f"/tickets/{opened.pk}/edit/", fields).status_code == 302
    assert getattr(Ticket.objects.get(), name) == values[0]
    assert not opened.events.filter(kind="changed").exists()


def test_the_form_changes_it(name, values, opened, sent, client):
    fields = sent(opened) | {name: typed(values[1])}
    assert client.post(f"/tickets/{opened.pk}/edit/", fields).status_code == 302
    assert getattr(Ticket.objects.get(), name) == values[1]


def test_both_values_of_a_conflict_are_shown(name, values, person, support, sent, client):
    ticket = Ticket.objects.open(by=person, team=support, subject="Printer")
    mine, theirs = values
    fields = sent(ticket) | {name: typed(mine)}
    ticket.edit(by=person, changes={name: theirs})
    answer = client.post(f"/tickets/{ticket.pk}/edit/", fields)
    page = answer.content.decode()
    assert answer.status_code == 409
    for value in (mine, theirs):
        assert f"<dd>{escape(value_text(name, value))}<" in page
    assert getattr(Ticket.objects.get(), name) == theirs, "nothing is decided yet"
    assert str(answer.context["form"][name].value()) == str(typed(mine))


def test_the_form_has_every_field():
    assert set(TicketForm.base_fields) - {"version"} == set(EDITABLE)


def test_the_admin_has_every_field():
    assert list(EDITABLE) == CHANGEABLE
    fieldsets = admin.site._registry[Ticket].fieldsets
    assert sorted(flatten_fieldsets(fieldsets)) == sorted(EDITABLE)


def test_a_misspelt_field_opens_nothing(alice, support):
    with pytest.raises(TypeError, match="colour"):
        Ticket.objects.open(by=alice, team=support, subject="Printer", colour="red")
    assert not Ticket.objects.exists()
