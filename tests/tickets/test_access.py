"""Who may see and change what: the access matrix."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from tickets.access import visible_ticket_or_404, workable_ticket_or_404
from tickets.models import Team, Ticket

SEES = {"alice": True, "bob": True, "vera": True, "charlie": False, "root": True}
WORKS = SEES | {"vera": False}


@pytest.fixture
def person(request, alice, bob, vera, charlie, root):
    cast = {user.username: user for user in (alice, bob, vera, charlie, root)}
    return cast[request.param]


@pytest.mark.parametrize("person", SEES, indirect=True)
def test_the_matrix(ticket, person, support):
    sees, works = SEES[person.username], WORKS[person.username]
    assert Ticket.objects.visible_to(person).exists() is sees
    assert Ticket.objects.workable_by(person).exists() is works
    assert support.is_visible_to(person) is sees
    assert support.is_workable_by(person) is works
    assert support.readers().filter(pk=person.pk).exists() is sees
    if sees:
        assert visible_ticket_or_404(person, ticket.pk) == ticket
    else:
        with pytest.raises(Http404):
            visible_ticket_or_404(person, ticket.pk)
    if works:
        assert workable_ticket_or_404(person, ticket.pk) == ticket
    else:
        with pytest.raises(PermissionDenied if sees else Http404):
            workable_ticket_or_404(person, ticket.pk)


@pytest.mark.parametrize("person", SEES, indirect=True)
def test_people_who_left_see_nothing(ticket, person, support):
    person.is_active = False
    person.save()
    assert not Ticket.objects.visible_to(person).exists()
    assert not Team.objects.workable_by(person).exists()
    assert not support.readers().filter(pk=person.pk).exists()
    with pytest.raises(Http404):
        visible_ticket_or_404(person, ticket.pk)


def test_strangers_see_nothing(ticket):
    assert not Ticket.objects.visible_to(AnonymousUser()).exists()
    assert not Ticket.objects.workable_by(AnonymousUser()).exists()


@pytest.mark.parametrize("pk", [0, -1, 10**18, 10**30])
def test_a_ticket_that_does_not_exist(ticket, root, pk):
    with pytest.raises(Http404):
        visible_ticket_or_404(root, pk)


def test_two_memberships_do_not_double_a_ticket(ticket, bob, billing):
    billing.memberships.create(user=bob, role="viewer")
    assert Ticket.objects.visible_to(bob).count() == 1
    assert Ticket.objects.workable_by(bob).count() == 1


def test_viewing_one_team_and_working_another_do_not_mix(ticket, bob, billing, root):
    theirs = Ticket.objects.open(by=root, team=billing, subject="B")
    billing.memberships.create(user=bob, role="viewer")
    assert set(Ticket.objects.visible_to(bob)) == {ticket, theirs}
    assert set(Ticket.objects.workable_by(bob)) == {ticket}


def test_a_team_offers_its_agents_and_leads_as_assignees(support, alice, bob, vera, charlie, root):
    assert list(support.workers()) == [alice, bob]


def test_live_and_overdue(ticket, bob, alice, support, yesterday, tomorrow):
    Ticket.objects.open(by=bob, team=support, subject="late", due_at=yesterday)
    Ticket.objects.open(by=bob, team=support, subject="done", due_at=yesterday, status="closed")
    Ticket.objects.open(by=bob, team=support, subject="soon", due_at=tomorrow, status="pending")
    names = Ticket.objects.live().order_by("id").values_list("subject", flat=True)
    assert list(names) == ["Printer", "late", "soon"]
    assert [ticket.subject for ticket in Ticket.objects.overdue()] == ["late"]
