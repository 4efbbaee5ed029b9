"""The ledger forgets what ended long ago, and nothing else."""

import uuid
from datetime import timedelta
from itertools import pairwise

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models.functions import Now

from tasks import jobs, registry
from tasks.models import BackgroundTask, TaskAttempt, TaskStatus, pruning
from tasks.worker import run_job

pytestmark = pytest.mark.django_db(transaction=True)

MONTH = timedelta(days=30)
prune = BackgroundTask.objects.prune


def row(status=TaskStatus.COMPLETED, days=31, kind="NOTE", attempts=0, **fields):
    """A task that ended so many days ago, with closed attempts."""
    fields = {"finished_at": Now() - timedelta(days=days)} | fields
    if status in (TaskStatus.WAITING, TaskStatus.RUNNING):
        fields["finished_at"] = None
    if status == TaskStatus.RUNNING:
        fields["execution_id"] = uuid.uuid4()
    task = BackgroundTask.objects.create(kind=kind, status=status, **fields)
    TaskAttempt.objects.bulk_create(
        TaskAttempt(
            task=task,
            run=0,
            attempt=number,
            execution_id=uuid.uuid4(),
            outcome="failed",
            finished_at=Now(),
        )
        for number in range(1, attempts + 1)
    )
    return task


def left():
    return set(BackgroundTask.objects.values_list("pk", flat=True))


def test_it_removes_what_ended_longer_ago_with_its_attempts():
    for status in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED):
        row(status, attempts=3)
    kept = row(days=29, attempts=2)
    assert prune(MONTH) == 3
    assert left() == {kept.pk}
    assert TaskAttempt.objects.count() == 2


def test_it_never_removes_a_live_row_however_old():
    ancient = {"created_at": Now() - timedelta(days=4000), "run_at": Now() - timedelta(days=4000)}
    live = {row(TaskStatus.WAITING, **ancient).pk, row(TaskStatus.RUNNING, **ancient).pk}
    assert prune(timedelta(days=1)) == 0
    assert left() == live


def test_a_result_within_its_time_and_grace_keeps_its_row(settings):
    fresh = row(expires_at=Now() + timedelta(days=1))
    in_grace = row(expires_at=Now() - settings.TEAMDESK_PURGE_GRACE + timedelta(minutes=1))
    row(expires_at=Now() - settings.TEAMDESK_PURGE_GRACE - timedelta(minutes=1))
    assert prune(MONTH) == 1
    assert left() == {fresh.pk, in_grace.pk}


def test_it_works_in_committed_batches_and_tells_how_far_it_is(monkeypatch, actor):
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 2)
    for _ in range(5):
        row()
    other, seen = actor("a reader"), []

    def progress(removed):
        seen.append((removed, other.do(BackgroundTask.objects.count)))

    assert prune(MONTH, progress=progress) == 5
    assert seen == [(2, 3), (4, 1), (5, 0)]


def test_many_attempts_go_in_batches_too(monkeypatch, actor):
    """One transaction never removes more than so many rows."""
    monkeypatch.setattr(pruning, "ATTEMPTS_AT_ONCE", 4)
    row(attempts=10, days=40), row(attempts=3, days=39), row(attempts=3, days=38)
    other, attempts = actor("a reader"), [16]

    def progress(removed):
        attempts.append(other.do(TaskAttempt.objects.count))

    assert prune(MONTH, progress=progress) == 3
    assert attempts[-1] == 0
    steps = [before - after for before, after in pairwise(attempts)]
    assert max(steps) <= 4


def test_it_stops_when_its_time_is_over_and_goes_on_later(monkeypatch):
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 1)
    row(), row()
    assert prune(MONTH, seconds=0) == 0
    assert prune(MONTH, seconds=60) == 2


def test_it_passes_rows_that_another_holds(actor):
    held, free = row(days=50), row()
    holder = actor("holder")
    holder.begin()
    holder.do(lambda: BackgroundTask.objects.select_for_update().get(pk=held.pk))
    assert prune(MONTH) == 1
    holder.commit()
    assert left() == {held.pk} and free.pk not in left()
    assert prune(MONTH) == 1


def test_a_retry_that_comes_first_keeps_its_task(actor, monkeypatch):
    """A person retries after the pruning chose its rows and before it locked them."""
    task = row(TaskStatus.FAILED)
    anna = actor("anna")
    original = BackgroundTask.objects.all().__class__.select_for_update

    def retried_meanwhile(self, *args, **kwargs):
        monkeypatch.undo()
        assert anna.do(BackgroundTask.objects.get(pk=task.pk).retry)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(pruning.Prunable, "select_for_update", retried_meanwhile)
    assert prune(MONTH) == 0
    task.refresh_from_db()
    assert (task.status, task.run) == (TaskStatus.WAITING, 1)


def test_a_retry_that_comes_second_finds_nothing(actor):
    """The pruning holds the row: the retry waits, and then there is no task to retry."""
    task = row(TaskStatus.FAILED)
    pruner, anna = actor("pruner"), actor("anna")
    pruner.begin()
    assert pruner.do(pruning._remove_some, BackgroundTask.objects.prunable(MONTH))[0] == 1
    retry = anna.start(BackgroundTask.objects.get(pk=task.pk).retry)
    anna.wait_until_blocked()
    pruner.commit()
    assert retry.result(30) is False
    assert left() == set()


def test_two_that_prune_at_once_share_the_rows(actor):
    for _ in range(4):
        row()
    first, second = actor("first"), actor("second")
    first.begin()
    some = BackgroundTask.objects.prunable(MONTH)
    assert first.do(lambda: pruning._remove_some(some)[0]) == 4
    row()
    assert second.do(prune, MONTH) == 1
    first.commit()
    assert left() == set()


def test_a_row_that_cannot_go_stops_no_other(monkeypatch, caplog):
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 2)
    stuck = [row(days=days) for days in (60, 33)]
    for _ in range(3):
        row()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE refers (task bigint REFERENCES tasks_backgroundtask)")
        cursor.execute("INSERT INTO refers SELECT unnest(%s)", [[task.pk for task in stuck]])
    try:
        assert prune(MONTH) == 3
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE refers")
    assert left() == {task.pk for task in stuck}
    assert f"Task {stuck[0].pk} cannot be pruned" in caplog.text


def test_it_is_refused_inside_a_transaction():
    with transaction.atomic(), pytest.raises(RuntimeError):
        prune(MONTH)


def test_it_leaves_redis_alone(empty_queue):
    empty_queue.set("teamdesk:job:1:0", "whatever")
    row()
    prune(MONTH)
    assert empty_queue.keys() == [b"teamdesk:job:1:0"]


def test_it_reads_its_index_alone():
    """A long history and nothing to prune: the first entry of the index says so."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tasks_backgroundtask (kind, status, run, attempt, max_attempts,"
            " progress_done, payload, last_error, request_id, finished_at)"
            " SELECT 'NOTE', 'COMPLETED', 0, 1, 7, 0, '{}', '', '', clock_timestamp()"
            " FROM generate_series(1, 5000)"
        )
        cursor.execute("ANALYZE tasks_backgroundtask")
        rows = BackgroundTask.objects.prunable(MONTH).order_by("finished_at", "pk")
        plan = rows[:500].explain()
    assert "Scan using task_ended" in plan


# The command


def command(*options):
    call_command("prune_tasks", *options)


def test_the_command_prunes_and_says_what_it_did(capsys):
    row(), row(kind="EXPORT"), row(days=1)
    command("--older-than", "30")
    assert capsys.readouterr().out == "2 tasks removed (EXPORT 1, NOTE 1).\n"
    assert len(left()) == 1


def test_a_dry_run_counts_and_removes_nothing(capsys):
    row(), row(), row(days=1)
    command("--older-than=30", "--dry-run")
    assert capsys.readouterr().out == "2 tasks would be removed (NOTE 2).\n"
    assert len(left()) == 3


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "many", "", "99999999999", "36501", "٣"])
def test_nonsense_is_refused_before_anything_goes(days):
    row()
    with pytest.raises(CommandError, match="is no number of days from 1 to 36500"):
        command(f"--older-than={days}")
    assert len(left()) == 1


def test_the_days_must_be_said():
    with pytest.raises(CommandError, match="--older-than"):
        command()


def test_an_interruption_says_what_is_gone_already(monkeypatch):
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 1)
    row(), row(), row()
    original, calls = pruning._remove_some, []

    def interrupted(rows):
        calls.append(rows)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(rows)

    monkeypatch.setattr(pruning, "_remove_some", interrupted)
    with pytest.raises(CommandError, match="2 tasks were removed") as error:
        command("--older-than=30")
    assert error.value.returncode == 130
    assert len(left()) == 1


# The daily chore


def chore(**fields):
    return BackgroundTask.objects.enqueue("PRUNE", **fields)


def test_the_chore_forgets_after_the_days_of_the_setting(settings):
    settings.TEAMDESK_KEEP_DAYS = 10
    row(days=11), row(days=12)
    kept = row(days=9)
    task = chore()
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED
    assert left() == {kept.pk, task.pk}
    task.refresh_from_db()
    assert task.progress_done == 2


def test_the_chore_keeps_all_but_canaries_when_the_setting_is_zero(settings):
    settings.TEAMDESK_KEEP_DAYS = 0
    old, recent = row(days=4000), row(days=0.5, kind="CANARY_LONG")
    row(days=2, kind="CANARY_SHORT"), row(days=2, kind="CANARY_LONG")
    task = chore()
    run_job(task.pk, 0)
    assert left() == {old.pk, recent.pk, task.pk}


def test_the_chore_takes_turns_with_the_exports(monkeypatch, settings):
    """What is left after a turn is removed in the next, which costs no attempt."""
    settings.TEAMDESK_KEEP_DAYS = 10
    monkeypatch.setattr(jobs, "TURN_SECONDS", 0.0001)
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 1)
    for _ in range(3):
        row()
    task = chore()
    turns = 0
    while run_job(task.pk, 0) == TaskStatus.WAITING:
        turns += 1
    task.refresh_from_db()
    assert task.status == TaskStatus.COMPLETED
    assert left() == {task.pk}
    assert turns >= 1
    assert task.max_attempts - task.attempt == registry.kind("PRUNE").max_attempts - 1


def test_the_chore_stops_when_its_lease_is_lost(monkeypatch, settings):
    settings.TEAMDESK_KEEP_DAYS = 10
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 1)
    for _ in range(3):
        row()
    task = chore()
    original = pruning._remove_some

    def cancelled_meanwhile(rows):
        BackgroundTask.objects.get(pk=task.pk).cancel()
        return original(rows)

    monkeypatch.setattr(pruning, "_remove_some", cancelled_meanwhile)
    assert run_job(task.pk, 0) is None
    assert len(left()) == 3  # one was gone before it noticed; the task itself


def test_the_canaries_pruning_reads_their_small_index():
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tasks_backgroundtask (kind, status, run, attempt, max_attempts,"
            " progress_done, payload, last_error, request_id, finished_at)"
            " SELECT CASE WHEN n % 100 = 0 THEN 'CANARY_SHORT' ELSE 'NOTE' END, 'COMPLETED', 0, 1,"
            " 7, 0, '{}', '', '', clock_timestamp() - make_interval(mins => n)"
            " FROM generate_series(1, 20000) AS n"
        )
        cursor.execute("ANALYZE tasks_backgroundtask")
    canaries = BackgroundTask.objects.filter(kind__in=registry.CANARIES.values())
    rows = canaries.prunable(jobs.CANARIES_KEPT).order_by("finished_at", "pk")
    assert "task_canaries" in rows[:500].explain()
