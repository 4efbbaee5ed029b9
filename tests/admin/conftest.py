import uuid

import pytest
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.utils import timezone

from tasks import registry
from tasks.models import BackgroundTask, TaskStatus


@pytest.fixture(autouse=True)
def _a_kind(monkeypatch):
    monkeypatch.setitem(registry._kinds, "CHORE", registry.Kind("CHORE", lambda task, lease: None))


@pytest.fixture
def make_task(db):
    """``make_task(status, **fields)``: a task of kind CHORE in that state."""

    def make(status=TaskStatus.WAITING, **fields):
        if status == TaskStatus.RUNNING:
            fields.setdefault("execution_id", uuid.uuid4())
        elif status != TaskStatus.WAITING:
            fields.setdefault("finished_at", timezone.now())
        fields.setdefault("kind", "CHORE")
        task = BackgroundTask.objects.create(status=status, **fields)
        task.refresh_from_db()
        return task

    return make


@pytest.fixture
def operator(db, make_staff):
    """Staff who may look at the ledger, retry and cancel."""
    return make_staff("otto", "tasks.view_backgroundtask", "tasks.change_backgroundtask")


@pytest.fixture
def observer(db, make_staff):
    """Staff who may only look at the ledger."""
    return make_staff("vito", "tasks.view_backgroundtask", "tasks.view_dispatcherstatus")


@pytest.fixture
def make_staff(db):
    """``make_staff(name, *permissions)``: a member of staff with exactly these permissions."""
    from tickets.models import User

    def make(name, *permissions):
        return _employ(User.objects.create_user(name, password="secret"), *permissions)

    return make


def _employ(user, *permissions):
    user.is_staff = True
    user.save()
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return user


@pytest.fixture
def employ():
    """``employ(user, *permissions)``: makes a person staff with these permissions."""
    return _employ


@pytest.fixture
def ticket(support, alice):
    from tickets.models import Ticket

    return Ticket.objects.open(by=alice, team=support, subject="Broken printer")


@pytest.fixture
def desk(alice, bob, vera, charlie, employ):
    """The cast, all staff who may view, add and change tickets as far as their teams let them."""
    for person in (alice, bob, vera, charlie):
        employ(person, "tickets.view_ticket", "tickets.add_ticket", "tickets.change_ticket")


@pytest.fixture
def ticket_form():
    """``ticket_form(ticket, **changes)``: what a browser posts from a ticket's admin page."""

    def fields(ticket, **changes):
        return {
            "team": ticket.team_id,
            "subject": ticket.subject,
            "description": ticket.description,
            "status": ticket.status,
            "priority": ticket.priority,
            "assignee": ticket.assignee_id or "",
            "requester_name": ticket.requester_name,
            "requester_email": ticket.requester_email,
            "tags": ",".join(ticket.tags),
            "due_at_0": "",
            "due_at_1": "",
            "version_seen": ticket.version,
            **{
                f"{inline}-{count}_FORMS": 0
                for inline in ("comments", "events")
                for count in ("TOTAL", "INITIAL")
            },
        } | changes

    return fields


@pytest.fixture
def told():
    """``told(response)``: what the person was told, as one text."""

    def texts(response):
        return "\n".join(str(message) for message in get_messages(response.wsgi_request))

    return texts


@pytest.fixture
def run_action():
    """``run_action(client, url, name, *rows)``: runs an admin action on these rows."""

    def run(client, url, name, *rows):
        return client.post(url, {"action": name, "_selected_action": [row.pk for row in rows]})

    return run
