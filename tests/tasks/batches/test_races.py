"""Others take, hold or change tasks of a batch while it runs."""

import pytest
from django.db import connection
from django.db.models import F

from tasks import batch
from tasks.claim import claim
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_jobs
from tests.tasks.batches.ledger import COMPLETED, WAITING, enqueue, jobs, outcomes, reread
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)


def race(handler, tasks, place, meanwhile):
    """``meanwhile(task)`` happens while the handler of that task works, in another connection."""

    def handle(task, lease):
        if task.pk == tasks[place].pk:
            meanwhile(task)
        return lambda: write_note(task)

    handler(handle)


@pytest.mark.parametrize("place", [0, 2])
def test_a_lease_that_is_lost_on_the_way_is_that_tasks_alone(three, notes, actor, handler, place):
    other = actor("other")

    def recovered(task):
        other.do(
            lambda: BackgroundTask.objects.filter(pk=three[1].pk).update(
                status=WAITING, execution_id=None
            )
        )

    race(handler, three, place, recovered)
    assert run_jobs(jobs(three)) == [COMPLETED, None, COMPLETED]
    assert notes() == [(three[0].pk, 0), (three[2].pk, 0)]
    assert reread(three[1]).status == WAITING


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_cancel_before_during_or_after_its_handler_leaves_no_effect(
    three, notes, actor, handler, place
):
    person = actor("person")
    race(handler, three, place, lambda task: person.do(reread(three[1]).cancel))
    assert run_jobs(jobs(three)) == [COMPLETED, None, COMPLETED]
    assert notes() == [(three[0].pk, 0), (three[2].pk, 0)]
    assert reread(three[1]).status == TaskStatus.CANCELLED
    assert outcomes(three[1]) == ["cancelled"]


def test_a_cancel_that_holds_the_row_while_the_group_commits(three, notes, actor):
    """The group gives way to the row's holder; alone, the neighbours finish and it is cancelled."""
    person, worker = actor("person"), actor("worker")
    leases = [Lease(task) for task in claim(jobs(three))]
    person.begin()
    assert person.do(reread(three[1]).cancel)
    running = batch.Batch(leases)
    result = worker.start(running.run)
    person_committed = False
    try:
        worker.wait_until_blocked()
        # The first was completed alone before the worker came to the row that is held.
        person.commit()
        person_committed = True
    finally:
        if not person_committed:
            person.commit()
    statuses = result.result(30)
    assert [statuses.get(task.job_id) for task in three] == [COMPLETED, None, COMPLETED]
    assert notes() == [(three[0].pk, 0), (three[2].pk, 0)]


def test_a_row_that_another_holds_keeps_no_neighbour_waiting(three, notes, actor):
    """It is claimed last, when its holder lets it go."""
    editor, worker = actor("editor"), actor("worker")
    editor.begin()
    editor.do(lambda: BackgroundTask.objects.select_for_update().get(pk=three[0].pk).pk)
    result = worker.start(run_jobs, jobs(three))
    worker.wait_until_blocked()
    assert notes() == [(three[1].pk, 0), (three[2].pk, 0)]
    editor.commit()
    assert result.result(30) == [COMPLETED] * 3
    assert len(notes()) == 3


def test_a_deadlock_with_a_verb_ends_the_group_and_never_the_verb(
    notes, actor, handler, wait_until, groups
):
    """A verb that locks two rows in the other order than the group's effects."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE test_rows (id int PRIMARY KEY, n int DEFAULT 0)")
        cursor.execute("INSERT INTO test_rows VALUES (0), (1)")
    tasks = [enqueue() for _ in range(2)]
    verb = actor("verb")

    def add(row):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE test_rows SET n = n + 1 WHERE id = %s", [row])

    verbs = []

    def handle(task, lease):
        place = tasks.index(task)

        def effect():
            if place == 1 and not verbs:
                # The group holds row 0 now. The verb took row 1 and waits for row 0.
                verbs.append(verb.start(add, 0))
                verb.wait_until_blocked()
            add(place)
            write_note(task)

        return effect

    handler(handle)
    verb.begin()
    verb.do(add, 1)
    worker = actor("worker")
    result = worker.start(run_jobs, jobs(tasks))
    try:
        wait_until(lambda: verbs)
        assert verbs[0].result(30) is None  # no deadlock was reported to the verb
        verb.commit()
        assert result.result(30) == [COMPLETED] * 2
        assert groups == [2]
        assert len(notes()) == 2
        with connection.cursor() as cursor:
            cursor.execute("SELECT n FROM test_rows ORDER BY id")
            assert cursor.fetchall() == [(2,), (2,)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE test_rows")


def test_a_serialization_failure_in_the_group_is_repeated_alone(three, notes, handler, groups):
    failures = []

    def handle(task, lease):
        def effect():
            write_note(task)
            if task.pk == three[2].pk and not failures:
                failures.append(task.pk)
                with connection.cursor() as cursor:
                    cursor.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")

        return effect

    handler(handle)
    assert run_jobs(jobs(three)) == [COMPLETED] * 3
    assert (groups, len(failures)) == ([3], 1)
    assert len(notes()) == 3
    assert all(outcomes(task) == ["completed"] for task in three)


def test_a_group_is_over_before_anybody_could_be_ended_by_it(three, notes, handler, monkeypatch):
    """Effects that take long together are committed one by one, however long each takes."""
    monkeypatch.setattr("tasks.completion._GROUP_SECONDS", -1)
    assert run_jobs(jobs(three)) == [COMPLETED] * 3
    assert len(notes()) == 3


def test_a_commit_that_is_lost_with_its_connection_doubles_nothing(
    three, notes, handler, monkeypatch
):
    """Whether the group was committed is not known: the fence of each task tells."""
    original = batch.complete_together

    def committed_and_cut(finished):
        original(finished)
        connection.close()
        raise ConnectionError("cut before the answer")

    monkeypatch.setattr(batch, "complete_together", committed_and_cut)
    run_jobs(jobs(three))
    assert len(notes()) == 3
    assert all(reread(task).status == COMPLETED for task in three)


def test_two_workers_share_a_batch_that_both_were_told_of(notes, actor):
    tasks = [enqueue() for _ in range(10)]
    anna, otto = actor("anna"), actor("otto")
    results = [
        anna.start(run_jobs, jobs(tasks)),
        otto.start(run_jobs, list(reversed(jobs(tasks)))),
    ]
    done = [result.result(30) for result in results]
    assert sum(status == COMPLETED for statuses in done for status in statuses) == 10
    assert len(notes()) == 10
    assert not BackgroundTask.objects.exclude(attempt=F("attempts__attempt")).exists()
