"""seed_demo: a lively company, the same every time, added once."""

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tasks.models import BackgroundTask
from tickets.demo import staging
from tickets.demo.cast import PASSWORD
from tickets.management.commands import seed_demo
from tickets.models import Comment, MailDelivery, Notification, Team, Ticket, TicketEvent, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def seed(settings):
    settings.DEBUG = True

    def seed(**options):
        out = io.StringIO()
        call_command("seed_demo", stdout=out, **options)
        return out.getvalue()

    return seed


@pytest.fixture
def small(monkeypatch):
    """A smaller company, with some of everything."""
    monkeypatch.setattr(staging, "COUNTS", counts := {"support": 45, "customers-china": 3})
    monkeypatch.setattr(seed_demo, "COUNTS", counts)


def rows():
    models = (User, Team, Ticket, TicketEvent, Comment, Notification, BackgroundTask)
    return {model.__name__: model.objects.count() for model in models}


def test_it_adds_a_lively_company_and_once(seed):
    out = seed()
    for name in ("admin", "alice", "bob", "vera", "charlie", "mei"):
        assert f"  {name} " in out
        assert User.objects.get(username=name).check_password(PASSWORD)
    assert PASSWORD in out

    now = timezone.now()
    tickets = Ticket.objects.all()
    assert 280 <= tickets.count() <= 330
    assert set(tickets.values_list("status", flat=True)) == {
        "open",
        "pending",
        "on_hold",
        "resolved",
        "closed",
    }
    assert tickets.overdue().count() >= 10
    soon = now + timedelta(minutes=30)
    assert tickets.live().filter(due_at__gt=now, due_at__lt=soon).count() >= 5
    assert tickets.live().filter(assignee=None).exists()
    assert Comment.objects.filter(is_public=False).count() > 50
    assert tickets.filter(team__slug="customers-china", subject__contains="咖啡").exists()
    days = set(tickets.dates("created_at", "day"))
    assert len(days) > 15
    assert not tickets.filter(created_at__gt=now).exists()

    seen = {user.username: tickets.visible_to(user).count() for user in User.objects.all()}
    assert seen["admin"] == tickets.count()
    assert 0 < seen["charlie"] < seen["alice"] < seen["admin"]
    mei = User.objects.get(username="mei")
    assert (mei.language, mei.time_zone) == ("zh-hans", "Asia/Shanghai")

    before = rows()
    assert "0 demo tickets added" in seed()
    assert rows() == before


def test_its_history_is_in_order_and_agrees_with_the_tickets(seed, small):
    seed()
    now = timezone.now()
    for ticket in Ticket.objects.prefetch_related("events", "comments"):
        events = sorted(ticket.events.all(), key=lambda event: event.pk)
        moments = [event.at for event in events]
        assert moments == sorted(moments) and moments[-1] <= now
        assert (moments[0], moments[-1]) == (ticket.created_at, ticket.updated_at)
        assert events[-1].version == ticket.version
        replies = [each.created_at for each in ticket.comments.all() if each.is_public]
        assert ticket.first_responded_at == min(replies, default=None)
        closed = [event.at for event in events if event.new_value == "closed"]
        assert ticket.closed_at == (closed[-1] if ticket.status == "closed" else None)
        assert (ticket.resolved_at is None) is ticket.is_live
        for moment in (ticket.first_responded_at, ticket.resolved_at, ticket.closed_at):
            assert moment is None or ticket.created_at <= moment <= ticket.updated_at


def test_every_live_due_date_has_its_reminder(seed, small):
    seed()
    waiting = BackgroundTask.objects.waiting().filter(kind="REMINDER")
    due = Ticket.objects.live().exclude(due_at=None)
    scheduled = waiting.values_list("ticket", "run_at", "reminder_revision")
    assert set(scheduled) == set(due.values_list("pk", "due_at", "reminder_revision"))


def test_nobody_gets_mail_about_what_happened_long_ago(seed, small):
    seed()
    assert Notification.objects.filter(kind="assigned").exists()
    assert not MailDelivery.objects.exists()
    assert not BackgroundTask.objects.exclude(kind="REMINDER").exists()


def test_people_who_exist_keep_their_passwords_and_rights(seed, small):
    User.objects.create_user("admin", password="my own")
    out = seed()
    admin = User.objects.get(username="admin")
    assert admin.check_password("my own") and not admin.is_superuser
    assert "existed already, password unchanged" in out


def test_it_is_refused_in_production(seed, small, settings):
    settings.DEBUG = False
    with pytest.raises(CommandError, match="DEBUG is off"):
        seed()
    assert not User.objects.exists()
    assert "demo tickets added" in seed(force=True)


def test_it_tells_the_same_stories_every_time(seed, small):
    def told():
        fields = ("external_id", "subject", "requester_email", "status", "priority", "assignee")
        return sorted(Ticket.objects.values_list(*fields), key=str)

    seed()
    first = told()
    Ticket.objects.all().delete()
    seed()
    assert told() == first
