"""A request's id: accepted or made, sent back, and written into the tasks that it enqueues."""

import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from tasks import correlation
from tasks.models import BackgroundTask
from tickets.models import Ticket

pytestmark = pytest.mark.django_db

MADE_HERE = r"[0-9a-f]{32}"


def test_every_response_carries_an_id_of_its_own(client):
    first, second = (client.get("/healthz")["X-Request-ID"] for _ in range(2))
    assert re.fullmatch(MADE_HERE, first)
    assert first != second


@pytest.mark.parametrize(
    "offered",
    [
        "7f9c24e8-3b12-4fef-91e0-56a2d5a1c9b7",
        "0HMVB3J6KLQ8T:00000002",
        "Root=1-67891233-abcdef012345678912345678",
        "a" * 64,
    ],
)
def test_an_id_that_a_proxy_gave_is_kept(client, offered):
    assert client.get("/healthz", headers={"X-Request-ID": offered})["X-Request-ID"] == offered


@pytest.mark.parametrize(
    "offered",
    ["", "short", "a" * 65, "with a space", "<script>alert(1)", "gefälscht-1", "-dash-first"],
)
def test_what_is_not_safe_is_replaced(client, offered):
    answered = client.get("/healthz", headers={"X-Request-ID": offered})["X-Request-ID"]
    assert re.fullmatch(MADE_HERE, answered)


def test_an_error_page_carries_it_too(client):
    assert client.get("/nowhere/", headers={"X-Request-ID": "proxy-4711"}).status_code == 404
    response = client.get("/nowhere/", headers={"X-Request-ID": "proxy-4711"})
    assert response["X-Request-ID"] == "proxy-4711"


def test_the_task_remembers_the_request_that_enqueued_it(client, alice, support):
    client.force_login(alice)
    response = client.post(reverse("export_new"), headers={"X-Request-ID": "proxy-4711"})
    assert response.status_code == 302
    assert BackgroundTask.objects.get(kind="EXPORT").request_id == "proxy-4711"
    assert correlation.request_id.get() == ""  # it ended with the request


def test_what_no_request_enqueued_names_none(alice, support):
    due_at = datetime(2099, 1, 1, tzinfo=UTC)
    Ticket.objects.open(by=alice, team=support, subject="Lift", due_at=due_at)
    assert BackgroundTask.objects.get().request_id == ""
