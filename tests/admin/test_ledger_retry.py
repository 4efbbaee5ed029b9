import pytest
from django.contrib.admin.models import LogEntry
from django.db import OperationalError
from django.urls import reverse

from tasks.models import BackgroundTask

pytestmark = pytest.mark.django_db
LEDGER = reverse("admin:tasks_backgroundtask_changelist")


def test_it_starts_a_new_run_of_failed_and_cancelled_tasks(
    client, operator, make_task, run_action, told
):
    failed, cancelled = make_task("FAILED", attempt=7, last_error="Boom"), make_task("CANCELLED")
    client.force_login(operator)
    response = run_action(client, LEDGER, "retry", failed, cancelled)
    assert response.status_code == 302
    assert f"#{cancelled.pk}, #{failed.pk}" in told(response)
    for task in (failed, cancelled):
        task.refresh_from_db()
        assert (task.status, task.run, task.attempt, task.last_error) == ("WAITING", 1, 0, "")


def test_it_skips_the_others_and_says_why(client, operator, make_task, run_action, told):
    failed, waiting = make_task("FAILED"), make_task("WAITING")
    running, completed = make_task("RUNNING"), make_task("COMPLETED")
    client.force_login(operator)
    response = run_action(client, LEDGER, "retry", failed, waiting, running, completed)
    lines = told(response).splitlines()
    assert f"To be run again: #{failed.pk}" in lines
    assert f"Not retried, it is waiting: #{waiting.pk}" in lines
    assert f"Not retried, it is running: #{running.pk}" in lines
    assert f"Not retried, it is completed: #{completed.pk}" in lines
    for task in (waiting, running, completed):
        before = task.status
        task.refresh_from_db()
        assert (task.status, task.run) == (before, 0)


def test_it_reports_a_conflict_of_dedup_keys_and_goes_on(
    client, operator, make_task, run_action, told
):
    conflicting = make_task("FAILED", dedup_key="daily")
    make_task("WAITING", dedup_key="daily")
    other = make_task("FAILED")
    client.force_login(operator)
    response = run_action(client, LEDGER, "retry", conflicting, other)
    lines = told(response).splitlines()
    assert f"Not retried, another live task holds the dedup key “daily”: #{conflicting.pk}" in lines
    assert f"To be run again: #{other.pk}" in lines
    conflicting.refresh_from_db()
    assert (conflicting.status, conflicting.run) == ("FAILED", 0)


def test_of_two_with_one_dedup_key_one_goes(client, operator, make_task, run_action, told):
    first, second = make_task("FAILED", dedup_key="k"), make_task("FAILED", dedup_key="k")
    client.force_login(operator)
    response = run_action(client, LEDGER, "retry", first, second)
    assert len(told(response).splitlines()) == 2
    assert BackgroundTask.objects.waiting().count() == 1


def test_one_bad_row_does_not_stop_the_others(
    client, operator, make_task, run_action, told, monkeypatch
):
    good, bad, late = make_task("FAILED"), make_task("FAILED"), make_task("FAILED")
    retry = BackgroundTask.retry

    def refuse_one(task, by=None):
        if task.pk == bad.pk:
            raise OperationalError("canceling statement due to lock timeout")
        return retry(task, by=by)

    monkeypatch.setattr(BackgroundTask, "retry", refuse_one)
    client.force_login(operator)
    response = run_action(client, LEDGER, "retry", good, bad, late)
    lines = told(response).splitlines()
    assert f"OperationalError: canceling statement due to lock timeout: #{bad.pk}" in lines
    assert f"To be run again: #{late.pk}, #{good.pk}" in lines


def test_someone_who_is_too_late_is_told(
    client, operator, make_task, run_action, told, monkeypatch
):
    task = make_task("FAILED")
    monkeypatch.setattr(BackgroundTask, "retry", lambda task, by=None: False)
    client.force_login(operator)
    response = run_action(client, LEDGER, "retry", task)
    assert told(response) == f"Not retried, someone else was faster: #{task.pk}"


def test_it_is_noted_who_did_it(client, operator, make_task, run_action):
    task, waiting = make_task("FAILED"), make_task("WAITING")
    client.force_login(operator)
    run_action(client, LEDGER, "retry", task, waiting)
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (operator, str(task.pk))


def test_too_many_rows_at_once_are_refused(
    client, operator, make_task, run_action, told, monkeypatch
):
    monkeypatch.setattr("tasks.admin.rows.ROWS_AT_ONCE", 1)
    rows = [make_task("FAILED"), make_task("FAILED")]
    client.force_login(operator)
    response = run_action(client, LEDGER, "retry", *rows)
    assert told(response).startswith("Nothing was changed: at most 1 rows at once.")
    assert not BackgroundTask.objects.waiting().exists()


def test_observers_can_neither_see_nor_run_it(client, observer, make_task, run_action):
    task = make_task("FAILED")
    client.force_login(observer)
    assert 'value="retry"' not in client.get(LEDGER).content.decode()
    run_action(client, LEDGER, "retry", task)
    task.refresh_from_db()
    assert task.status == "FAILED"


# The button of one task's page


def test_the_button_retries_and_returns_to_the_task(client, operator, make_task, told):
    task = make_task("FAILED")
    detail = reverse("admin:tasks_backgroundtask_change", args=[task.pk])
    button = reverse("admin:tasks_backgroundtask_retry", args=[task.pk])
    client.force_login(operator)
    assert f'action="{button}"' in client.get(detail).content.decode()
    response = client.post(button)
    assert (response.status_code, response["Location"]) == (302, detail)
    assert told(response) == f"To be run again: #{task.pk}"
    task.refresh_from_db()
    assert (task.status, task.run) == ("WAITING", 1)


def test_the_button_is_there_only_when_it_would_do_something(client, operator, make_task):
    client.force_login(operator)
    for status, offered in [("WAITING", False), ("RUNNING", False), ("COMPLETED", False),
                            ("FAILED", True), ("CANCELLED", True)]:  # fmt: skip
        task = make_task(status)
        detail = reverse("admin:tasks_backgroundtask_change", args=[task.pk])
        assert (f"/{task.pk}/retry/" in client.get(detail).content.decode()) is offered, status


def test_the_button_needs_post_permission_and_a_task(client, operator, observer, make_task):
    task = make_task("FAILED")
    button = reverse("admin:tasks_backgroundtask_retry", args=[task.pk])
    client.force_login(operator)
    assert client.get(button).status_code == 405
    assert client.post(button.replace(str(task.pk), str(task.pk + 1))).status_code == 404
    assert client.post(button.replace(str(task.pk), "9" * 30)).status_code == 404
    client.force_login(observer)
    detail = reverse("admin:tasks_backgroundtask_change", args=[task.pk])
    assert button not in client.get(detail).content.decode()
    assert client.post(button).status_code == 403
    task.refresh_from_db()
    assert task.status == "FAILED"
