"""Saved views as a model: who sees and changes them, whose days they mean, who was faster."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from tickets.filters import TicketFilter
from tickets.models import ListSettings, Membership, SavedView, Ticket, ViewChanged, saved_view

COLUMNS = ["id", "subject"]


@pytest.fixture
def save(bob):
    """``save(name, by=, team=, filters=)``: a view."""

    def save(name="Fires", by=bob, team=None, filters=None, zone="UTC"):
        return SavedView.objects.save_view(
            by, name=name, team=team, filters=filters or {}, zone=zone, columns=COLUMNS
        )

    return save


def names(person):
    return sorted(SavedView.objects.visible_to(person).values_list("name", flat=True))


def test_a_private_view_is_its_owners_alone_and_a_shared_one_its_teams(
    save, support, alice, bob, vera, charlie, root
):
    save("private")
    save("shared", team=support)
    assert names(bob) == ["private", "shared"]
    assert names(alice) == names(vera) == names(root) == ["shared"]
    assert names(charlie) == []
    bob.is_active = False
    assert names(bob) == []


def test_who_leaves_the_team_loses_its_views_and_theirs_there(save, support, bob):
    view = save("shared", team=support)
    Membership.objects.filter(user=bob).delete()
    assert names(bob) == []
    assert not view.is_changeable_by(bob)
    with pytest.raises(SavedView.DoesNotExist):
        view.change(bob, 1, name="mine")


def test_its_owner_and_leads_may_change_it(save, support, alice, bob, vera, charlie, root):
    shared, private = save(team=support), save()
    may = {
        person for person in (alice, bob, vera, charlie, root) if shared.is_changeable_by(person)
    }
    assert may == {alice, bob, root}
    assert [p for p in (alice, bob, root) if private.is_changeable_by(p)] == [bob]
    assert shared.change(alice, 1, name="Blazes").name == "Blazes"
    with pytest.raises(PermissionDenied):
        shared.change(vera, 2, name="Vera's")
    with pytest.raises(PermissionDenied):
        shared.discard(vera)
    with pytest.raises(PermissionDenied):
        shared.change(alice, 2, team=None)
    shared.refresh_from_db()
    assert (shared.name, shared.team, shared.version) == ("Blazes", support, 2)


def test_one_shares_with_teams_one_works_in(save, support, billing, bob, vera):
    for person, team in ((bob, billing), (vera, support)):
        with pytest.raises(ValidationError):
            save(by=person, team=team)
    view = save()
    with pytest.raises(ValidationError):
        view.change(bob, 1, team=billing)
    assert not SavedView.objects.get().is_shared


def test_a_team_that_is_gone_leaves_its_views_to_their_owners(save, charlie, billing):
    save("shared", by=charlie, team=billing)
    billing.delete()
    assert names(charlie) == ["shared"]


def test_there_is_an_end_to_how_many_one_may_have(save, monkeypatch, alice):
    monkeypatch.setattr(saved_view, "MOST_VIEWS", 1)
    save()
    with pytest.raises(ValidationError, match="1 views already"):
        save()
    save(by=alice)


def test_who_changes_an_older_version_is_told_what_is_there_now(save, support, alice, bob):
    view = save("Fires", team=support)
    view.change(alice, 1, name="A")
    with pytest.raises(ViewChanged) as refused:
        view.change(bob, 1, name="B")
    assert refused.value.view.name == "A"
    view.refresh_from_db()
    assert (view.name, view.version) == ("A", 2)


@pytest.mark.django_db(transaction=True)
def test_two_connections_never_both_win(save, support, alice, bob, actor):
    view = save("Fires", team=support)
    slow, fast = actor("slow"), actor("fast")
    slow.begin()
    slow.do(view.change, alice, 1, name="A")
    waiting = fast.start(view.change, bob, 1, name="B")
    fast.wait_until_blocked()
    slow.commit()
    with pytest.raises(ViewChanged):
        waiting.result(timeout=30)
    view.refresh_from_db()
    assert (view.name, view.version) == ("A", 2)


ZONES = ["Asia/Kathmandu", "America/St_Johns", "Europe/Berlin", "UTC"]


@pytest.mark.parametrize("saved_in", ZONES)
@pytest.mark.parametrize("opened_in", ZONES)
@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25", "2026-11-01", "2026-06-15"])
def test_days_are_those_of_the_zone_it_was_saved_in(
    save, support, alice, bob, saved_in, opened_in, day
):
    """The clocks change on these days in Berlin and St John's."""
    filters = {"created_after": day, "created_before": day}
    noon_before = datetime.fromisoformat(f"{day}T12:00Z") - timedelta(days=1)
    Ticket.objects.bulk_create(
        Ticket(
            team=support,
            subject=f"{hour} h",
            created_at=noon_before + timedelta(hours=hour, minutes=-15),
        )
        for hour in range(60)
    )
    with timezone.override(saved_in):
        meant = set(TicketFilter(filters, bob).queryset().values_list("pk", flat=True))
    view = save(filters=filters, zone=saved_in)
    with timezone.override(opened_in):
        opened = TicketFilter(view.query(timezone.get_current_timezone()), bob)
        assert not opened.errors
        assert set(opened.queryset().values_list("pk", flat=True)) == meant
        assert meant


def test_what_is_no_day_stays_as_it_is(save):
    filters = {"q": "2026-05-01", "due_after": "today-3", "status": ["open"], "sort": "due"}
    view = save(filters=filters, zone="Asia/Shanghai")
    assert view.query(ZoneInfo("Europe/Berlin")) == filters


def test_everyone_has_an_order_of_their_own(save, support, alice, bob):
    first, second = save("a", team=support), save("b", team=support)
    third = save("c")
    ListSettings.objects.move_view(bob, third, -1)
    assert ListSettings.objects.move_view(bob, first, 5)
    order = ListSettings.objects.of(bob).in_order(SavedView.objects.visible_to(bob))
    assert order == [third, second, first]
    assert not ListSettings.objects.move_view(bob, third, -1)
    theirs = ListSettings.objects.of(alice).in_order(SavedView.objects.visible_to(alice))
    assert theirs == [first, second]
    second.discard(by=bob)
    new = save("0")
    order = ListSettings.objects.of(bob).in_order(SavedView.objects.visible_to(bob))
    assert order == [third, first, new]


def test_nobody_moves_a_view_they_do_not_see(save, charlie):
    with transaction.atomic():
        assert not ListSettings.objects.move_view(charlie, save(), 1)
    assert ListSettings.objects.of(charlie).view_order == []
