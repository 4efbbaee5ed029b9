"""Fifty failed tasks are retried at once; a live task holds the dedup key of one of them."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection, transaction
from django.urls import reverse

from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, DedupConflict, TaskStatus
from tasks.worker import run_job

pytestmark = pytest.mark.django_db

LEDGER = reverse("admin:tasks_backgroundtask_changelist")

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def fifty(notes):
    """Dead letters, each with a dedup key of its own, each for a reason that is over by now."""
    tasks = [enqueue("NOTE", dedup_key=f"report:{number}") for number in range(50)]
    for task in tasks:
        BackgroundTask.objects.filter(pk=task.pk).update(max_attempts=1)
        Lease.claim(task.pk, 0).fail_attempt(ConnectionError("the printer is on fire"))
    tasks = list(BackgroundTask.objects.order_by("pk"))
    assert {task.status for task in tasks} == {TaskStatus.FAILED}
    return tasks


@pytest.fixture(params=[TaskStatus.WAITING, TaskStatus.RUNNING])
def holder(request, fifty):
    """Holds the key of the 26th, so that there are rows before and after it."""
    holder = enqueue("NOTE", dedup_key="report:25")
    if request.param == TaskStatus.RUNNING:
        Lease.claim(holder.pk, 0)
    holder.refresh_from_db()
    assert holder.status == request.param
    return holder


def _assert_all_but_the_26th_went(fifty, holder):
    before = holder.status
    for number, task in enumerate(fifty):
        task.refresh_from_db()
        if number == 25:
            assert (task.status, task.run, task.attempt) == (TaskStatus.FAILED, 0, 1)
            assert "on fire" in task.last_error
            assert task.finished_at
        else:
            assert (task.status, task.run, task.attempt) == (TaskStatus.WAITING, 1, 0)
    holder.refresh_from_db()
    assert (holder.status, holder.run) == (before, 0)


@pytest.mark.parametrize("door", ["admin", "operations page"])
def test_forty_nine_go_and_the_conflict_is_named(
    client, operator, run_action, told, fifty, holder, door
):
    client.force_login(operator)
    if door == "admin":
        response = run_action(client, LEDGER, "retry", *fifty)
    else:
        error = "ConnectionError: the printer is on fire"
        group = {"status": "FAILED", "kind": "NOTE", "error": error, "verb": "retry"}
        response = client.post(reverse("operations_group"), group)
    assert response.status_code == 302
    _assert_all_but_the_26th_went(fifty, holder)
    gone = {f"#{task.pk}" for number, task in enumerate(fifty) if number != 25}
    done, refused = told(response).splitlines()
    assert done.startswith("To be run again: ")
    assert set(done.removeprefix("To be run again: ").split(", ")) == gone
    key = "Not retried, another live task holds the dedup key “report:25”"
    assert refused == f"{key}: #{fifty[25].pk}"
    assert client.get(response["Location"]).status_code == 200
    noted = {f"#{entry}" for entry in LogEntry.objects.values_list("object_id", flat=True)}
    assert noted == gone


def test_the_verb_raises_for_one_and_does_the_others(fifty, holder, root):
    conflicts = []
    for task in fifty:
        try:
            assert task.retry(by=root)
        except DedupConflict as conflict:
            conflicts.append((task.pk, str(conflict)))
    ((pk, text),) = conflicts
    assert pk == fifty[25].pk
    assert "report:25" in text
    _assert_all_but_the_26th_went(fifty, holder)


def test_within_one_transaction_the_conflict_undoes_nothing_of_the_others(fifty, holder):
    with transaction.atomic():
        for number, task in enumerate(fifty):
            if number == 25:
                with pytest.raises(DedupConflict):
                    task.retry()
            else:
                assert task.retry()
        with connection.cursor() as cursor:  # the transaction is still usable
            cursor.execute("SELECT 1")
    _assert_all_but_the_26th_went(fifty, holder)


def test_the_forty_nine_run_once_more_and_the_one_when_its_key_is_free(fifty, notes):
    holder = enqueue("NOTE", dedup_key="report:25")
    for number, task in enumerate(fifty):
        if number != 25:
            task.retry()
    assert dispatch_once().enqueued == 50  # forty-nine and the holder
    for task in fifty:
        expected = None if task.pk == fifty[25].pk else TaskStatus.COMPLETED
        assert run_job(task.pk, 1) == expected
    assert run_job(holder.pk, 0) == TaskStatus.COMPLETED
    assert fifty[25].retry()
    assert run_job(fifty[25].pk, 1) == TaskStatus.COMPLETED
    assert notes() == sorted([(task.pk, 1) for task in fifty] + [(holder.pk, 0)])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("accepted", [True, False], ids=["committed", "rolled back"])
def test_a_holder_that_is_just_being_accepted_is_waited_for(fifty, actor, reread, accepted):
    """The other request's transaction decides: the key is its, or free."""
    person, otto = actor("person"), actor("otto")
    person.begin()
    person.do(enqueue, "NOTE", dedup_key="report:25")
    retry = otto.start(fifty[25].retry)
    otto.wait_until_blocked()
    if not accepted:
        person.do(transaction.set_rollback, True)
    person.commit()
    if accepted:
        with pytest.raises(DedupConflict):
            retry.result(30)
        assert reread(fifty[25]).status == TaskStatus.FAILED
    else:
        assert retry.result(30) is True
        assert reread(fifty[25]).status == TaskStatus.WAITING
    live = BackgroundTask.objects.live().filter(dedup_key="report:25")
    assert live.count() == 1
