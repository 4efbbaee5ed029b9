from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from tasks import registry
from tasks.models import Chore

pytestmark = pytest.mark.django_db

LIST = reverse("admin:tasks_chore_changelist")


@pytest.fixture
def chore_of(monkeypatch):
    """``chore_of(task)``: the daily chore whose last task this is."""

    def make(task):
        daily = registry.Kind("SWEEP", lambda task, lease: None, every=timedelta(days=1))
        monkeypatch.setitem(registry._kinds, "SWEEP", daily)
        slot = datetime(2026, 12, 1, tzinfo=UTC)
        return Chore.objects.create(kind="SWEEP", slot_at=slot, task_id=task and task.pk)

    return make


@pytest.fixture
def page(client, make_staff):
    def get():
        client.force_login(make_staff("ina", "tasks.view_chore"))
        response = client.get(LIST)
        assert response.status_code == 200
        return response.content.decode()

    return get


def test_it_shows_the_last_slot_and_what_became_of_its_task(page, chore_of, make_task):
    task = make_task("FAILED", kind="SWEEP")
    chore_of(task)
    content = page()
    assert "SWEEP" in content and "2026-12-01" in content and "1 day, 0:00:00" in content
    link = f'<a href="/admin/tasks/backgroundtask/{task.pk}/change/">#{task.pk}</a> failed'
    assert link in content


def test_a_task_that_was_pruned_is_no_error(page, chore_of, make_task):
    task = make_task("COMPLETED", kind="SWEEP")
    chore_of(task)
    task.delete()
    assert "SWEEP" in page()


def test_a_chore_that_nobody_knows_any_more_says_so(page):
    Chore.objects.create(kind="GONE", slot_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert "not any more" in page()


def test_it_is_read_only(client, root, chore_of):
    chore_of(None)
    client.force_login(root)
    assert client.get(reverse("admin:tasks_chore_add")).status_code == 403
    change = reverse("admin:tasks_chore_change", args=["SWEEP"])
    assert client.post(change, {"slot_at_0": "2020-01-01"}).status_code == 403
    delete = reverse("admin:tasks_chore_delete", args=["SWEEP"])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert Chore.objects.get().slot_at.year == 2026
