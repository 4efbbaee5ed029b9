from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from tasks.models import DispatcherStatus

pytestmark = pytest.mark.django_db
LIST = reverse("admin:tasks_dispatcherstatus_changelist")
PAGE = reverse("admin:tasks_dispatcherstatus_change", args=[1])


def test_it_shows_ages_and_counts(client, observer):
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.25, {"scanned": 12, "enqueued": 0})
    DispatcherStatus.objects.update(last_failed_at=timezone.now() - timedelta(hours=3))
    client.force_login(observer)
    listed = client.get(LIST).content.decode()
    assert "scanned 12" in listed
    assert "enqueued" not in listed
    assert "s ago)" in listed
    assert "(3\xa0hours ago)" in listed
    detail = client.get(PAGE).content.decode()
    assert "&quot;scanned&quot;: 12" in detail
    assert "0.25" in detail


def test_before_the_first_round_the_list_is_empty(client, observer):
    client.force_login(observer)
    assert client.get(LIST).status_code == 200


def test_a_fault_is_shown_escaped(client, observer):
    DispatcherStatus.record_start()
    DispatcherStatus.record_fault(1.0, {}, "Redis did not answer: <b>")
    client.force_login(observer)
    assert "Redis did not answer: &lt;b&gt;" in client.get(PAGE).content.decode()
