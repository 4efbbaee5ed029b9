from datetime import UTC, datetime

import pytest
from django.urls import reverse

from tasks.models import DispatcherStatus
from tickets.models import Notification

pytestmark = pytest.mark.django_db


def test_the_index_speaks_chinese_to_who_prefers_it(client, root):
    root.language = "zh-hans"
    root.save()
    client.force_login(root)
    content = client.get(reverse("admin:index")).content.decode()
    assert 'lang="zh-hans"' in content
    assert "最近动作" in content  # recent actions


def test_every_page_renders_in_chinese(client, root, bob, support, ticket, make_task):
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.1, {"scanned": 1})
    task = make_task("FAILED", last_error="Boom", ticket=ticket)
    told = Notification.objects.create(user=bob, kind="reminder", cause="c", text="t")
    status = DispatcherStatus.current()
    client.force_login(root)
    for row in (task, told, status, ticket, support, bob):
        name = f"{row._meta.app_label}_{row._meta.model_name}"
        for url in (
            reverse(f"admin:{name}_changelist"),
            reverse(f"admin:{name}_change", args=[row.pk]),
            reverse(f"admin:{name}_history", args=[row.pk]),
        ):
            response = client.get(url, headers={"accept-language": "zh-hans"})
            assert response.status_code == 200, url
            assert 'lang="zh-hans"' in response.content.decode(), url


def test_times_are_in_the_persons_zone(client, root, make_task):
    root.time_zone = "Asia/Shanghai"
    root.save()
    task = make_task(run_at=datetime(2026, 3, 1, 20, 30, tzinfo=UTC))
    client.force_login(root)
    url = reverse("admin:tasks_backgroundtask_change", args=[task.pk])
    assert "<span>2026-03-02</span> <span>04:30:00</span>" in client.get(url).content.decode()
