import pytest
from django.urls import reverse

from tasks.models import TaskAttempt

pytestmark = pytest.mark.django_db
LEDGER = reverse("admin:tasks_backgroundtask_changelist")


def test_it_cancels_what_is_live_and_says_why_not_the_rest(
    client, operator, make_task, run_action, told
):
    waiting, running, completed = make_task("WAITING"), make_task("RUNNING"), make_task("COMPLETED")
    attempt = TaskAttempt.objects.create(
        task=running, run=0, attempt=1, execution_id=running.execution_id
    )
    client.force_login(operator)
    response = run_action(client, LEDGER, "cancel", waiting, running, completed)
    lines = told(response).splitlines()
    assert f"Cancelled: #{running.pk}, #{waiting.pk}" in lines
    assert f"Not cancelled, it is already completed: #{completed.pk}" in lines
    for task in (waiting, running):
        task.refresh_from_db()
        assert (task.status, task.last_error) == ("CANCELLED", "Cancelled by otto.")
    attempt.refresh_from_db()
    assert attempt.outcome == "cancelled"
    completed.refresh_from_db()
    assert completed.status == "COMPLETED"


def test_observers_cannot_run_it(client, observer, make_task, run_action):
    task = make_task("WAITING")
    client.force_login(observer)
    run_action(client, LEDGER, "cancel", task)
    assert (
        client.post(reverse("admin:tasks_backgroundtask_cancel", args=[task.pk])).status_code == 403
    )
    task.refresh_from_db()
    assert task.status == "WAITING"


def test_the_button_cancels_one_task(client, operator, make_task):
    task = make_task("RUNNING")
    button = reverse("admin:tasks_backgroundtask_cancel", args=[task.pk])
    client.force_login(operator)
    detail = reverse("admin:tasks_backgroundtask_change", args=[task.pk])
    assert f'action="{button}"' in client.get(detail).content.decode()
    assert client.post(button).status_code == 302
    task.refresh_from_db()
    assert task.status == "CANCELLED"
    assert button not in client.get(detail).content.decode()
