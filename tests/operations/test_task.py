"""The life of one task on one page."""

import pytest
from django.urls import reverse

from tasks.models import TaskStatus
from tasks.operations.life import life

pytestmark = pytest.mark.django_db


def test_every_attempt_with_worker_error_and_timing(client, operator, busy_ledger):
    client.force_login(operator)
    text = client.get(f"/operations/tasks/{busy_ledger.pk}/").content.decode()
    for number in (1, 2, 3):
        assert f"Run 0, attempt {number}" in text
    assert text.count("short@desk1") == 3
    assert text.count("took 2.0 s") == 3
    assert text.count("in run_export") == 3
    assert "&lt;b&gt;no&lt;/b&gt; such column" in text and "<b>no</b>" not in text
    assert "{&quot;export&quot;: 12}" in text


def test_passages_are_newest_first_with_the_time_between(busy_ledger):
    passages = life(busy_ledger)
    assert [passage.attempt.attempt for passage in passages] == [3, 2, 1]
    assert [round(passage.idle) for passage in passages[:2]] == [98, 98]
    assert round(passages[-1].took) == 2


def test_a_running_attempt_has_not_ended(make_task, attempt):
    task = make_task(TaskStatus.RUNNING)
    made = attempt(task)
    type(made).objects.filter(pk=made.pk).update(outcome="", finished_at=None)
    assert life(task)[0].took is None


def test_attempts_of_earlier_runs_stay(client, operator, busy_ledger, attempt):
    busy_ledger.retry()
    attempt(busy_ledger, 1)
    client.force_login(operator)
    text = client.get(f"/operations/tasks/{busy_ledger.pk}/").content.decode()
    assert text.index("Run 1, attempt 1") < text.index("Run 0, attempt 3")


def test_a_live_task_asks_for_itself_and_one_that_ended_does_not(client, operator, make_task):
    client.force_login(operator)
    for status, asks in (("WAITING", True), ("RUNNING", True), ("FAILED", False)):
        text = client.get(f"/operations/tasks/{make_task(status).pk}/").content.decode()
        assert ('hx-trigger="every 3s"' in text) is asks


def test_its_verbs_are_the_ledgers(client, operator, make_task, busy_ledger):
    client.force_login(operator)
    url = reverse("operations_retry", args=[busy_ledger.pk])
    assert client.get(url).status_code == 405
    assert client.post(url).url == f"/operations/tasks/{busy_ledger.pk}/"
    busy_ledger.refresh_from_db()
    assert (busy_ledger.status, busy_ledger.run) == (TaskStatus.WAITING, 1)
    client.post(reverse("operations_cancel", args=[busy_ledger.pk]))
    busy_ledger.refresh_from_db()
    assert busy_ledger.status == TaskStatus.CANCELLED


@pytest.mark.parametrize("number", ["1", "9" * 30])
def test_a_number_that_is_no_task_is_not_found(client, operator, number):
    client.force_login(operator)
    assert client.get(f"/operations/tasks/{number}/").status_code == 404
