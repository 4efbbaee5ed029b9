"""Every URL of the project, asked for by everyone: who gets in, who is sent away, who sees nothing.

A URL that is not in the table fails the test: whoever adds one says here who may use it.
"""

from datetime import time
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from exports.models import Export, ScheduledExport
from tasks.models import TaskStatus
from tickets.models import BulkEdit, Notification, SavedView, Ticket

CAST = ("anonymous", "alice", "bob", "vera", "charlie")
LOGIN = "log in first"


def same(answer):
    return (answer,) * len(CAST)


NO_METHOD = same(405)
OF_TICKET = {"args": lambda world: [world.ticket.pk]}
OF_NOTICE = {"args": lambda world: [world.notice.pk]}
OF_EXPORT = {"args": lambda world: [world.export.pk]}
OF_SCHEDULE = {"args": lambda world: [world.schedule.pk]}
OF_VIEW = {"args": lambda world: [world.view.pk]}
OF_BULK = {"args": lambda world: [world.bulk_edit.pk]}
OF_TASK = {"args": lambda world: [world.export.task.pk]}

# The answers are those to anonymous, alice (who opened the ticket, and whose the notification and
# the export are), bob (an agent of her team), vera (who only views it), charlie (of another team).
# A POST carries no fields.
TABLE = {
    "": {"get": same(302), "post": same(302)},  # on to the list
    "ticket_list": {"get": (LOGIN, 200, 200, 200, 200), "post": NO_METHOD},
    "ticket_new": {"get": (LOGIN, 200, 200, 403, 200), "post": (LOGIN, 422, 422, 403, 422)},
    "bulk_new": {"get": (LOGIN, 200, 200, 403, 200), "post": (LOGIN, 422, 422, 403, 422)},
    "bulk_detail": OF_BULK | {"get": (LOGIN, 200, 404, 404, 404), "post": NO_METHOD},
    "bulk_cancel": OF_BULK | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "bulk_retry": OF_BULK | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "ticket_detail": OF_TICKET | {"get": (LOGIN, 200, 200, 200, 404), "post": NO_METHOD},
    "ticket_pulse": OF_TICKET | {"get": (LOGIN, 200, 200, 200, 404), "post": NO_METHOD},
    "ticket_edit": OF_TICKET
    | {"get": (LOGIN, 200, 200, 403, 404), "post": (LOGIN, 422, 422, 403, 404)},
    **{
        f"ticket_verb {verb}": {
            "args": lambda world, verb=verb: [world.ticket.pk, verb],
            "get": NO_METHOD,
            "post": (LOGIN, done, done, 403, 404),
        }
        for verb, done in {
            "comment": 422,
            "assign": 422,
            "status": 422,
            "priority": 422,
            "due": 422,
            "tags": 422,
            "resolve": 302,
            "close": 302,
            "reopen": 302,
            "unknown": 404,
        }.items()
    },
    "dashboard": {"get": (LOGIN, 200, 200, 200, 200), "post": NO_METHOD},
    "list_columns": {"get": NO_METHOD, "post": (LOGIN, 302, 302, 302, 302)},
    "saved_view_list": {"get": (LOGIN, 200, 200, 200, 200), "post": NO_METHOD},
    "saved_view_new": {"get": (LOGIN, 200, 200, 200, 200), "post": (LOGIN, 422, 422, 422, 422)},
    # Alice's, shared with her team.
    "saved_view_edit": OF_VIEW
    | {"get": (LOGIN, 200, 403, 403, 404), "post": (LOGIN, 422, 403, 403, 404)},
    "saved_view_move": OF_VIEW | {"get": NO_METHOD, "post": (LOGIN, 302, 302, 302, 404)},
    # Alice deletes it before the others come.
    "saved_view_delete": OF_VIEW | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "notification_list": {"get": (LOGIN, 200, 200, 200, 200), "post": NO_METHOD},
    "notification_badge": {"get": (LOGIN, 200, 200, 200, 200), "post": NO_METHOD},
    "notification_open": OF_NOTICE | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "notification_read": OF_NOTICE | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "notification_read_all": {"get": NO_METHOD, "post": (LOGIN, 302, 302, 302, 302)},
    "export_list": {"get": (LOGIN, 200, 200, 200, 200), "post": NO_METHOD},
    "export_new": {"get": (LOGIN, 200, 200, 200, 200), "post": (LOGIN, 302, 302, 302, 302)},
    "export_detail": OF_EXPORT | {"get": (LOGIN, 200, 404, 404, 404), "post": NO_METHOD},
    "export_download": OF_EXPORT | {"get": (LOGIN, 409, 404, 404, 404), "post": NO_METHOD},
    "export_retry": OF_EXPORT | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "export_cancel": OF_EXPORT | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "export_discard": OF_EXPORT | {"get": NO_METHOD, "post": (LOGIN, 302, 404, 404, 404)},
    "export_schedule_list": {"get": (LOGIN, 200, 200, 200, 200), "post": NO_METHOD},
    "export_schedule_new": {
        "get": (LOGIN, 200, 200, 200, 200),
        "post": (LOGIN, 422, 422, 422, 422),
    },
    "export_schedule_edit": OF_SCHEDULE
    | {"get": (LOGIN, 200, 404, 404, 404), "post": (LOGIN, 422, 404, 404, 404)},
    **{
        f"export_schedule_verb {verb}": {
            "args": lambda world, verb=verb: [world.schedule.pk, verb],
            "get": NO_METHOD,
            "post": (LOGIN, done, 404, 404, 404),
        }
        for verb, done in {
            "pause": 302,
            "resume": 302,
            "run": 302,
            "delete": 302,
            "unknown": 404,
        }.items()
    },
    # For staff with the permission; tests/operations shows who gets in.
    "operations": {"get": (LOGIN, 403, 403, 403, 403), "post": NO_METHOD},
    "operations_group": {"get": NO_METHOD, "post": (LOGIN, 403, 403, 403, 403)},
    "operations_task": OF_TASK | {"get": (LOGIN, 403, 403, 403, 403), "post": NO_METHOD},
    "operations_retry": OF_TASK | {"get": NO_METHOD, "post": (LOGIN, 403, 403, 403, 403)},
    "operations_cancel": OF_TASK | {"get": NO_METHOD, "post": (LOGIN, 403, 403, 403, 403)},
    "login": {"get": (200, 302, 302, 302, 302), "post": (200, 302, 302, 302, 302)},
    "logout": {"get": NO_METHOD, "post": same(302)},
    "profile": {"get": (LOGIN, 200, 200, 200, 200), "post": (LOGIN, 302, 302, 302, 302)},
    "mail_preferences": {"get": NO_METHOD, "post": (LOGIN, 302, 302, 302, 302)},
    "change_password": {"get": NO_METHOD, "post": (LOGIN, 422, 422, 422, 422)},
    "choose_language": {"get": NO_METHOD, "post": same(302)},
    "healthz": {"get": same(200), "post": NO_METHOD},
    "readyz": {"get": same(503), "post": NO_METHOD},  # no dispatcher runs here
    "metrics": {"get": same(200), "post": NO_METHOD},  # from this very machine
}


@pytest.fixture
def world(alice, bob, vera, charlie, support):
    ticket = Ticket.objects.open(by=alice, team=support, subject="Broken printer")
    Notification.objects.notify([alice], kind="assigned", cause="c", ticket=ticket, text="x")
    return SimpleNamespace(
        ticket=ticket,
        notice=Notification.objects.get(),
        export=Export.objects.request(alice, {}, ["id"]),
        bulk_edit=BulkEdit.objects.request(alice, {ticket.pk: 1}, {"priority": "high"}),
        schedule=ScheduledExport.objects.schedule(
            alice, name="Daily", rhythm="daily", time_of_day=time(8)
        ),
        view=SavedView.objects.save_view(
            alice, name="Fires", team=support, filters={}, zone="UTC", columns=["id"]
        ),
        people={"alice": alice, "bob": bob, "vera": vera, "charlie": charlie},
    )


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("entry", TABLE)
def test_everyone_gets_the_answer_of_the_table(world, entry, method):
    name, row = entry.partition(" ")[0], TABLE[entry]
    url = reverse(name, args=row["args"](world) if "args" in row else []) if name else "/"
    answers = {person: _answer(world, person, method, url) for person in CAST}
    assert answers == dict(zip(CAST, row[method], strict=True))


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_admin_is_for_staff(world, method):
    for name, pattern in _patterns():
        if not name.startswith("admin:"):
            continue
        url = "/" + _filled(pattern)
        for person in CAST:
            answer = _client(world, person).generic(method.upper(), url)
            if name == "admin:login":
                assert answer.status_code == 200
            elif name == "admin:logout":
                assert answer.url == "/admin/"
            else:
                assert (answer.status_code, answer.url) == (302, f"/admin/login/?next={url}"), name


@pytest.mark.parametrize(
    ("page", "form"),
    [
        ("/tickets/{ticket}/", "/tickets/{ticket}/comment/"),
        ("/notifications/?unread=1", "/notifications/{notice}/read/"),
        ("/exports/", "/exports/{export}/cancel/"),
        ("/accounts/profile/", "/accounts/password/"),
    ],
)
def test_whose_session_ended_comes_back_to_the_page_of_the_form(world, page, form):
    names = {"ticket": world.ticket.pk, "notice": world.notice.pk, "export": world.export.pk}
    page, form = page.format(**names), form.format(**names)
    client = Client()
    login = client.post(form, headers={"Referer": f"http://testserver{page}"}).url
    client.post(login, {"username": "alice", "password": "secret"})
    assert client.get(login).url == page
    # Another site's page is not where one was.
    elsewhere = Client().post(form, headers={"Referer": f"http://evil.example{page}"})
    assert elsewhere.url.endswith(f"next={form}")


def test_a_persons_pages_are_for_no_shared_cache(world):
    for url in ("/tickets/", f"/tickets/{world.ticket.pk}/", "/notifications/", "/exports/"):
        assert "private" in _client(world, "alice").get(url).headers["Cache-Control"], url


def test_every_url_is_in_the_table():
    urls = {name for name, _pattern in _patterns() if not name.startswith("admin:")}
    assert urls == {entry.partition(" ")[0] for entry in TABLE}


def test_nobody_changed_anything_who_may_not(world):
    """The refusals above are not only words."""
    for person in ("anonymous", "vera", "charlie"):
        client = _client(world, person)
        for verb in ("status", "resolve", "close", "comment", "due", "tags", "assign"):
            client.post(
                f"/tickets/{world.ticket.pk}/{verb}/",
                {"status": "closed", "body": "x", "is_public": "1", "due_at": "2031-01-01T10:00"},
            )
        client.post(f"/tickets/{world.ticket.pk}/edit/", {"subject": "x"})
        client.post(f"/exports/{world.export.pk}/cancel/")
        client.post(f"/notifications/{world.notice.pk}/read/")
    world.ticket.refresh_from_db()
    world.notice.refresh_from_db()
    world.export.task.refresh_from_db()
    assert (world.ticket.version, world.ticket.comments.count()) == (1, 0)
    assert world.notice.read_at is None
    assert world.export.task.status == TaskStatus.WAITING


def _client(world, person) -> Client:
    client = Client()
    if person != "anonymous":
        client.force_login(world.people[person])
    return client


def _answer(world, person, method, url):
    answer = getattr(_client(world, person), method)(url)
    is_login = answer.status_code == 302 and answer.url.startswith("/accounts/login/?next=")
    return LOGIN if is_login else answer.status_code


def _patterns(resolver=None, namespace="", prefix=""):
    """(name, route) of every URL pattern of the project."""
    for each in (resolver or get_resolver()).url_patterns:
        route = prefix + str(each.pattern)
        if isinstance(each, URLPattern):
            yield namespace + (each.name or ""), route
        else:
            inner = f"{namespace}{each.namespace}:" if each.namespace else namespace
            yield from _patterns(each, inner, route)


def _filled(route: str) -> str:
    """A URL of the route, with 1 for every parameter."""
    parts = [
        "1" if part.startswith(("<", "(?P<")) else part
        for part in route.replace("^", "").replace("$", "").split("/")
    ]
    return "/".join(parts)
