import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tickets.models import Notification

pytestmark = pytest.mark.django_db
LIST = reverse("admin:tickets_notification_changelist")


@pytest.fixture
def notification(bob, ticket):
    return Notification.objects.create(
        user=bob, ticket=ticket, kind="reminder", cause="reminder:1:1", text="<i>Printer</i>"
    )


def test_they_are_read_only(client, root, notification):
    page = reverse("admin:tickets_notification_change", args=[notification.pk])
    client.force_login(root)
    assert "&lt;i&gt;Printer&lt;/i&gt;" in client.get(page).content.decode()
    assert client.post(page, {"text": "x"}).status_code == 403
    assert client.post(page.replace("change", "delete"), {"post": "yes"}).status_code == 403
    assert client.get(reverse("admin:tickets_notification_add")).status_code == 403
    notification.refresh_from_db()
    assert notification.text == "<i>Printer</i>"


def test_they_are_filtered_by_unread(client, root, notification):
    client.force_login(root)
    assert len(client.get(LIST, {"unread": "1"}).context["cl"].result_list) == 1
    assert len(client.get(LIST, {"unread": "0"}).context["cl"].result_list) == 0


def test_those_about_tickets_of_others_stay_hidden(client, charlie, employ, notification):
    client.force_login(employ(charlie, "tickets.view_notification"))
    assert "Printer" not in client.get(LIST).content.decode()


def test_the_list_takes_the_same_queries_for_many(client, root, notification, make_staff):
    client.force_login(root)

    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert client.get(LIST).status_code == 200
        return len(captured)

    few = queries()
    for number in range(8):
        user = make_staff(f"reader{number}")
        Notification.objects.create(
            user=user, ticket=notification.ticket, kind="reminder", cause=str(number)
        )
    assert queries() == few
