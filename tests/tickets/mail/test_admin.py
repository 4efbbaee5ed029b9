"""Deliveries in admin: read-only, filtered, retried through the ledger."""

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tasks.models import TaskStatus
from tickets.models import Notification

pytestmark = pytest.mark.django_db
LIST = reverse("admin:tickets_maildelivery_changelist")


def rows(client, **filters):
    return list(client.get(LIST, filters).context["cl"].result_list)


def retry(client, delivery):
    answer = client.post(LIST, {"action": "retry", "_selected_action": [delivery.pk]})
    return " ".join(str(each) for each in get_messages(answer.wsgi_request))


def test_they_are_read_only(client, root, delivery):
    client.force_login(root)
    page = reverse("admin:tickets_maildelivery_change", args=[delivery.pk])
    shown = client.get(page).content.decode()
    assert "bob@example.org" in shown and f"/backgroundtask/{delivery.task_id}/change/" in shown
    assert client.post(page, {"status": "sent"}).status_code == 403
    assert client.post(page.replace("change", "delete"), {"post": "yes"}).status_code == 403
    delivery.refresh_from_db()
    assert delivery.status == "queued"


def test_they_are_filtered_and_found(client, root, delivery):
    client.force_login(root)
    assert rows(client, status="queued") == rows(client, q="bob@") == [delivery]
    assert rows(client, kind="assigned", task__status="WAITING") == [delivery]
    assert rows(client, q=delivery.message_id) == [delivery]
    assert rows(client, status="sent") == rows(client, task__status="FAILED") == []


def test_those_about_tickets_of_others_stay_hidden(client, charlie, delivery):
    from django.contrib.auth.models import Permission

    charlie.is_staff = True
    charlie.save()
    charlie.user_permissions.add(Permission.objects.get(codename="view_maildelivery"))
    client.force_login(charlie)
    assert rows(client) == []


def test_a_failed_one_is_retried_through_the_ledger(client, root, delivery, run, monkeypatch):
    client.force_login(root)
    assert "Not retried, it is waiting" in retry(client, delivery)
    delivery.task.cancel()
    assert "To be run again" in retry(client, delivery)
    delivery.task.refresh_from_db()
    assert (delivery.task.status, delivery.task.run) == (TaskStatus.WAITING, 1)


def test_the_list_takes_the_same_queries_for_many(client, root, delivery, alice, bob, vera):
    client.force_login(root)

    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert client.get(LIST).status_code == 200
        return len(captured)

    few = queries()
    for number in range(3):
        Notification.objects.notify(
            [alice, bob, vera], kind="reminder", cause=f"r{number}", ticket=delivery.ticket
        )
    assert queries() == few
