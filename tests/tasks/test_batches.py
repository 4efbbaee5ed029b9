"""Tasks of one message: together while all goes well, and each alone when it does not."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from tasks import batch, queue, registry
from tasks.claim import claim
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tasks.registry import Kind, handles
from tasks.worker import run_job, run_jobs
from tests.tasks.kinds import write_note

pytestmark = pytest.mark.django_db(transaction=True)

COMPLETED, WAITING, FAILED = TaskStatus.COMPLETED, TaskStatus.WAITING, TaskStatus.FAILED


def enqueue(does=None, **more):
    return BackgroundTask.objects.enqueue("QUICK_NOTE", payload={"does": does}, **more)


@pytest.fixture
def three(notes):
    return [enqueue() for _ in range(3)]


def jobs(tasks):
    return [(task.pk, task.run) for task in tasks]


def reread(task):
    return BackgroundTask.objects.get(pk=task.pk)


def outcomes(task):
    return list(task.attempts.values_list("outcome", flat=True))


@pytest.fixture
def groups(monkeypatch):
    """The sizes of the groups that are completed in one transaction, each when it is tried."""
    monkeypatch.setattr(batch, "_GROUP_AFTER_SECONDS", 600)  # however slow this machine is
    sizes, original = [], batch.complete_together

    def counted(finished):
        sizes.append(len(finished))
        return original(finished)

    monkeypatch.setattr(batch, "complete_together", counted)
    return sizes


@pytest.fixture
def handler(monkeypatch):
    """``handler(function, **policy)``: what kind QUICK_NOTE does in this test."""

    def install(function, **policy):
        kind = Kind("QUICK_NOTE", function, **{"batch": 10, "ladder": (60, 300)} | policy)
        monkeypatch.setitem(registry._kinds, "QUICK_NOTE", kind)

    return install


# --- In one message -------------------------------------------------------------------------------


def test_first_attempts_of_a_kind_share_messages(notes, empty_queue):
    tasks = [enqueue() for _ in range(12)] + [BackgroundTask.objects.enqueue("NOTE")]
    assert dispatch_once().enqueued == 13
    assert empty_queue.llen("short") == 3  # ten, two, and the other kind's
    records = queue.view_of(tasks).records
    messages = [records[task.pk].message for task in tasks]
    assert len(set(messages)) == 3
    assert {messages.count(message) for message in messages} == {10, 2, 1}


def test_a_task_with_an_attempt_behind_it_travels_alone(three, empty_queue):
    run_job(three[0].pk, 0)
    claimed = Lease.claim(three[1].pk, 0)
    claimed.release()
    enqueue()
    dispatch_once()
    assert empty_queue.llen("short") == 2


def test_a_message_is_of_one_queue_and_one_kind(notes, handler, monkeypatch, empty_queue):
    monkeypatch.setitem(
        registry._kinds, "LONG_NOTE", Kind("LONG_NOTE", write_note, queue="long", batch=10)
    )
    for _ in range(3):
        enqueue()
        BackgroundTask.objects.enqueue("LONG_NOTE")
    dispatch_once()
    assert (empty_queue.llen("short"), empty_queue.llen("long")) == (1, 1)


def test_a_message_says_which_jobs_it_carries_and_how_long_they_may_take(three, empty_queue):
    dispatch_once()
    (raw,) = empty_queue.lrange("short", 0, -1)
    message = json.loads(raw)
    assert message["headers"]["timelimit"][0] == 60 + 30 + registry.BATCH_SECONDS
    assert "jobs" in message["headers"]["kwargsrepr"]


def test_messages_of_earlier_releases_are_understood():
    assert queue.jobs_of({"task_id": 7, "run": 1}) == [(7, 1)]
    assert queue.jobs_of({"jobs": [[7, 1], [8, 0]]}) == [(7, 1), (8, 0)]


@pytest.mark.parametrize(("policy", "why"), [({"batch": 0}, "batch"), ({"ladder": ()}, "attempt")])
def test_a_batch_that_could_cost_a_neighbour_everything_is_refused(policy, why):
    with pytest.raises(ValueError, match=why):
        handles("CROWD", **{"batch": 5} | policy)(lambda task, lease: None)


# --- While all goes well --------------------------------------------------------------------------


def test_all_is_done_in_one_transaction(three, notes, groups):
    assert run_jobs(jobs(three), "m", 1, "short@here") == [COMPLETED] * 3
    assert groups == [3]
    assert notes() == [(task.pk, 0) for task in three]
    for task in three:
        attempt = task.attempts.get()
        assert (attempt.outcome, attempt.worker, attempt.attempt) == ("completed", "short@here", 1)
        assert attempt.finished_at
        after = reread(task)
        assert (after.status, after.execution_id, after.attempt) == (COMPLETED, None, 1)
        assert after.finished_at and after.started_at


def test_each_has_an_execution_of_its_own(three):
    tasks = claim(jobs(three), "here")
    assert len({task.execution_id for task in tasks}) == 3
    assert [task.pk for task in tasks] == [task.pk for task in three]
    for task in tasks:
        stored = reread(task)
        for field in BackgroundTask._meta.concrete_fields:
            assert getattr(task, field.attname) == getattr(stored, field.attname), field


def test_the_queue_hears_of_all_of_them(three, empty_queue):
    dispatch_once()
    message = queue.view_of(three).records[three[0].pk].message
    run_jobs(jobs(three), message, 5)
    for record in queue.view_of(three).records.values():
        assert (record.state, record.attempt, record.message) == ("completed", 1, message)
    assert queue.view_of(three).watermarks["short"] == 5


def test_the_queue_hears_of_a_batch_that_takes_time(three, handler, wait_until, monkeypatch):
    monkeypatch.setattr("tasks.renewal._MOMENT_SECONDS", 0.01)
    dispatch_once()
    message = queue.view_of(three).records[three[0].pk].message

    def handle(task, lease):
        def is_told():
            view = queue.view_of(three)
            states = {record.state for record in view.records.values()}
            return states == {"active"} and view.watermarks["short"] == 5

        wait_until(is_told)

    handler(handle)
    assert run_jobs(jobs(three), message, 5) == [COMPLETED] * 3


def test_a_message_that_is_delivered_twice_runs_once(three, notes):
    run_jobs(jobs(three), "m")
    assert run_jobs(jobs(three), "m") == [None] * 3
    assert len(notes()) == 3


def test_a_job_that_is_named_twice_in_a_message_runs_once(three, notes):
    assert run_jobs(jobs(three) * 2) == [COMPLETED] * 3
    assert len(notes()) == 3


def test_results_expire_by_their_kinds_policy(three, handler):
    handler(lambda task, lease: None, result_ttl=lambda: timedelta(hours=3))
    run_jobs(jobs(three))
    for task in three:
        after = reread(task)
        assert after.expires_at - after.finished_at == timedelta(hours=3)


# --- One bad neighbour ----------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("does", "status", "together"),
    [
        ("fails", WAITING, [2]),
        ("is hopeless", FAILED, [2]),
        ("has a bad effect", WAITING, [3]),
    ],
)
def test_one_that_fails_spoils_nobody(notes, groups, place, does, status, together):
    tasks = [enqueue(does if number == place else None) for number in range(3)]
    expected = [COMPLETED] * 3
    expected[place] = status
    assert run_jobs(jobs(tasks)) == expected
    bad = tasks.pop(place)
    assert groups == together
    assert notes() == [(task.pk, 0) for task in tasks]
    assert outcomes(bad) == ["failed"]
    assert reread(bad).attempt == 1
    assert all(outcomes(task) == ["completed"] for task in tasks)


def test_an_unknown_kind_fails_each_attempt_alone(notes):
    tasks = [BackgroundTask.objects.create(kind="FROM_NEXT_RELEASE") for _ in range(2)]
    assert run_jobs(jobs(tasks)) == [WAITING] * 2
    for task in tasks:
        assert "FROM_NEXT_RELEASE" in reread(task).last_error


def test_what_is_not_to_be_run_is_left_out(three, notes, empty_queue):
    gone, cancelled, early = enqueue(), enqueue(), enqueue()
    other_run = enqueue()
    dispatch_once()
    tasks = [*three, gone, cancelled, early, other_run]
    message = queue.view_of(tasks).records[gone.pk].message
    wanted = jobs(tasks)
    BackgroundTask.objects.filter(pk=gone.pk).delete()
    BackgroundTask.objects.filter(pk=cancelled.pk).update(
        status=TaskStatus.CANCELLED, finished_at=Now()
    )
    BackgroundTask.objects.filter(pk=early.pk).update(run_at=Now() + timedelta(hours=1))
    BackgroundTask.objects.filter(pk=other_run.pk).update(run=1)
    assert run_jobs(wanted, message, 1) == [COMPLETED] * 3 + [None] * 4
    assert len(notes()) == 3
    records = queue.view_of(tasks).records
    assert records[early.pk].state == "delayed"
    assert {records[task.pk].state for task in (gone, cancelled, other_run)} == {"completed"}


# --- Races ----------------------------------------------------------------------------------------


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


# --- Leases of a batch ----------------------------------------------------------------------------


def test_all_leases_are_renewed_and_one_that_was_taken_is_told(
    three, notes, settings, handler, wait_until
):
    settings.TEAMDESK_RENEWAL_SECONDS = 0.05
    BackgroundTask.objects.filter(pk__in=[task.pk for task in three]).update(updated_at=Now())
    seen = {}

    def handle(task, lease):
        if task.pk == three[0].pk:
            before = {task.pk: reread(task).updated_at for task in three}
            reread(three[2]).cancel()
            wait_until(lambda: reread(three[0]).updated_at > before[three[0].pk])
            wait_until(lambda: reread(three[1]).updated_at > before[three[1].pk])
        seen[task.pk] = True
        return lambda: write_note(task)

    handler(handle)
    assert run_jobs(jobs(three)) == [COMPLETED, COMPLETED, None]
    assert three[2].pk not in seen  # told by the renewal, before its handler began
    assert len(notes()) == 2


def test_handlers_that_did_not_begin_in_time_are_released_at_no_cost(three, notes, handler):
    handler(lambda task, lease: lambda: write_note(task))
    original, registry.BATCH_SECONDS = registry.BATCH_SECONDS, -1
    try:
        assert run_jobs(jobs(three)) == [WAITING] * 3
    finally:
        registry.BATCH_SECONDS = original
    for task in three:
        after = reread(task)
        assert (after.attempt, after.max_attempts, after.dispatched_at) == (1, 4, None)
        assert outcomes(task) == ["released"]
    assert notes() == []


def test_a_hung_handler_fails_its_attempt_and_the_others_are_released(
    three, notes, handler, monkeypatch
):
    """The pool ends the process by SystemExit, past the hard limit."""

    def handle(task, lease):
        if task.pk == three[1].pk:
            lease._began_at -= 3600  # it hung for an hour
            raise SystemExit
        return lambda: write_note(task)

    handler(handle)
    with pytest.raises(SystemExit):
        run_jobs(jobs(three))
    assert [outcomes(task) for task in three] == [["released"], ["failed"], ["released"]]
    assert "time limit" in reread(three[1]).last_error
    assert [reread(task).max_attempts for task in three] == [4, 3, 4]
    assert notes() == []


def test_a_quick_handlers_effect_does_not_wait_for_slow_neighbours(
    three, notes, handler, groups, monkeypatch
):
    monkeypatch.setattr(batch, "_GROUP_AFTER_SECONDS", -1)
    handler(lambda task, lease: lambda: write_note(task))
    assert run_jobs(jobs(three)) == [COMPLETED] * 3
    assert groups == []  # each was committed before the next began
    assert len(notes()) == 3


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


# --- Real workers ---------------------------------------------------------------------------------


@pytest.mark.processes
def test_a_worker_runs_what_travelled_together(processes, three, notes, wait_until, empty_queue):
    dispatch_once()
    assert empty_queue.llen("short") == 1
    processes.worker()
    wait_until(lambda: all(reread(task).status == COMPLETED for task in three))
    assert len(notes()) == 3


@pytest.mark.processes
def test_one_that_kills_its_worker_costs_each_neighbour_one_attempt(
    processes, notes, wait_until, settings
):
    settings.TEAMDESK_LEASE_SECONDS = 1
    tasks = [enqueue(), enqueue("kills its worker"), enqueue()]
    BackgroundTask.objects.filter(pk=tasks[1].pk).update(max_attempts=1)
    processes.worker()
    dispatch_once()
    wait_until(lambda: outcomes(tasks[0]))

    def rounds_until_the_end():
        dispatch_once()
        # The failed record of the process sends its tasks up the ladder: the wait is cut short.
        BackgroundTask.objects.waiting().filter(dispatched_at=None).update(run_at=Now())
        BackgroundTask.objects.waiting().update(run_at=Now(), dispatched_at=None)
        return all(reread(task).is_terminal for task in tasks)

    wait_until(rounds_until_the_end, "each has an end", 90)
    assert [reread(task).status for task in tasks] == [COMPLETED, FAILED, COMPLETED]
    assert [outcomes(task) for task in tasks] == [
        ["lease_expired", "completed"],
        ["lease_expired"],
        ["lease_expired", "completed"],
    ]
    assert notes() == [(tasks[0].pk, 0), (tasks[2].pk, 0)]


@pytest.mark.processes
def test_a_shutdown_releases_what_is_not_done(processes, notes, wait_until):
    tasks = [enqueue(), enqueue("is slow"), enqueue()]
    BackgroundTask.objects.filter(pk=tasks[1].pk).update(
        payload={"does": "is slow", "seconds": 300}
    )
    worker = processes.worker()
    dispatch_once()
    wait_until(lambda: reread(tasks[1]).status == TaskStatus.RUNNING)
    worker.stop()
    for task in tasks:
        after = reread(task)
        assert (after.status, after.attempt, after.max_attempts) == (WAITING, 1, 4)
        assert outcomes(task) == ["released"]
    assert notes() == []
