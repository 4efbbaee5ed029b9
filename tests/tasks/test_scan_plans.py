"""The plans of what a round asks the ledger: each question has its index, and reads what it takes.

EXPLAIN (ANALYZE, BUFFERS) runs the very questions, on a ledger where a wrong plan reads thousands
of rows. What is read is judged, not what the planner thinks it costs and not how long it takes.
"""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from exports.purge import unneeded_chunks
from tasks.dispatcher import SLICE, dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tests.plans import copies, execute, explained, indexes, nodes, rows_read

pytestmark = pytest.mark.django_db

BATCH = 100  # TEAMDESK_BATCH_SIZE
# Pages of 8 KiB for each row that is taken: its own, and some of the index; and those on the way.
PAGES_PER_ROW, PAGES_ON_THE_WAY = 3, 15

FINISHED, FAR_OFF, NEW, DUE, RUNNING, EXPIRED, STORED = 20_000, 20_000, 3_000, 60, 40, 15, 10

tasks = BackgroundTask.objects


@pytest.fixture
def large_ledger(alice):
    """Much that is finished, much that is far off, a little of everything that a round looks for;
    and exports of which a few have their results stored."""
    one = tasks.enqueue("NOTE").pk
    ago = "now() - i * interval"
    copies(
        one,
        FINISHED,
        status="'COMPLETED'",
        run_at=f"{ago} '1 hour'",
        dispatched_at=f"{ago} '1 hour'",
        finished_at=f"{ago} '1 hour'",
    )
    copies(
        one,
        FAR_OFF,
        run_at="now() + interval '30 days' + i * interval '1 second'",
        dispatched_at="now() - interval '1 hour' + i * interval '1 millisecond'",
    )
    copies(one, NEW - 1, run_at=f"{ago} '1 second'")
    copies(one, DUE, run_at=f"{ago} '1 second'", dispatched_at="now() - interval '5 minutes'")
    held = {"status": "'RUNNING'", "execution_id": "gen_random_uuid()", "attempt": "1"}
    copies(one, RUNNING, updated_at="now()", **held)
    copies(one, EXPIRED, updated_at=f"{ago} '1 hour'", **held)
    execute(
        "INSERT INTO exports_export (task_id, requester_id, filters, filters_shown, columns,"
        " time_zone, filters_zone, language, row_kind, file_format, delimiter, team_ids,"
        " cut_cells)"
        f" SELECT id, {alice.pk}, '{{}}', '[]', '{{id}}', 'UTC', 'UTC', 'en', 'tickets', 'csv',"
        " ',', '{}', 0"
        " FROM tasks_backgroundtask WHERE status = 'COMPLETED' ORDER BY id LIMIT 5000"
    )
    execute(
        "INSERT INTO exports_exportchunk (export_id, execution_id, first_byte, data)"
        " SELECT task_id, gen_random_uuid(), 0, 'x' FROM exports_export"
        f" ORDER BY task_id DESC LIMIT {STORED}"
    )
    for table in ("tasks_backgroundtask", "exports_export", "exports_exportchunk"):
        execute(f"ANALYZE {table}")


# --- What is asked, and how a plan is judged ------------------------------------------------------


def _captured(work) -> str:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        work()
    return queries[-1]["sql"]


def _promoted() -> str:
    """As the promotion asks: which of the jobs that the queue named still wait."""
    some = list(tasks.waiting().order_by("?").values_list("pk", flat=True)[:BATCH])
    return _captured(lambda: list(tasks.waiting().with_is_due().filter(pk__in=some)))


def _selected(selection):
    return lambda: _captured(lambda: list(selection()))


def _batch_of_due() -> str:
    """Of the ids that a slice brought."""
    due = tasks.due_rechecks()
    some = list(due.values_list("pk", flat=True)[:BATCH])
    return _captured(lambda: list(due.filter(pk__in=some).with_is_due()[:BATCH]))


# name: (its SQL, the index it must use, rows it takes)
QUESTIONS = {
    "never dispatched": (
        _selected(lambda: tasks.never_dispatched().with_is_due()[:BATCH]),
        "task_never_dispatched",
        BATCH,
    ),
    "due re-checks": (
        _selected(lambda: tasks.due_rechecks().values_list("pk", flat=True)[:SLICE]),
        "task_due_recheck",
        DUE,
    ),
    "due re-checks, a batch": (_batch_of_due, "tasks_backgroundtask_pkey", DUE),
    "other re-checks": (
        _selected(lambda: tasks.other_rechecks().with_is_due()[:BATCH]),
        "task_other_recheck",
        BATCH,
    ),
    "recovery": (
        _selected(lambda: tasks.with_expired_lease().order_by("updated_at")),
        "task_running_lease",
        EXPIRED,
    ),
    "promotion": (_promoted, "tasks_backgroundtask_pkey", BATCH),
    "purge": (lambda: _captured(unneeded_chunks), "tasks_backgroundtask_pkey", STORED),
    "pruning": (
        _selected(lambda: tasks.prunable(timedelta(days=90)).order_by("finished_at", "pk")[:BATCH]),
        "task_ended",
        BATCH,
    ),
}
OWN_INDEX = [name for name, (_, index, _) in QUESTIONS.items() if index.startswith("task_")]


def complaints(plan: dict, index: str, takes: int) -> list[str]:
    """What is wrong with the plan of a question that takes so many rows by this index."""
    scans = [node for node in nodes(plan) if node.get("Relation Name") == "tasks_backgroundtask"]
    used = indexes(plan)
    read = sum(rows_read(node) for node in scans)
    pages = sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in scans)
    wrong = []
    if index not in used:
        wrong.append(f"{index} is not used, but {used or 'no index'}")
    if read > takes:
        wrong.append(f"{read:.0f} rows are read to take {takes}")
    if pages > takes * PAGES_PER_ROW + PAGES_ON_THE_WAY:
        wrong.append(f"{pages} pages are read to take {takes} rows")
    return wrong


# --- The tests ------------------------------------------------------------------------------------


def test_each_question_uses_its_index_and_reads_no_more_than_it_takes(large_ledger):
    wrong = {}
    for question, (sql, index, takes) in QUESTIONS.items():
        wrong[question] = complaints(explained(sql()), index, takes)
    assert wrong == {question: [] for question in QUESTIONS}


def test_what_there_is_to_do_is_found_by_the_indexes_alone(large_ledger):
    """However many rows there are, some pages of each of the three."""
    plan = explained(_captured(tasks.has_to_hand_over))
    assert indexes(plan) == {"task_never_dispatched", "task_due_recheck", "task_other_recheck"}
    assert sum(rows_read(node) for node in nodes(plan) if "Index Name" in node) == 3
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 3 * PAGES_ON_THE_WAY
    assert tasks.has_to_hand_over() == (True, True, True)


def test_nothing_to_do_is_found_by_the_indexes_alone(large_ledger):
    execute("UPDATE tasks_backgroundtask SET dispatched_at = now() WHERE status = 'WAITING'")
    execute("ANALYZE tasks_backgroundtask")
    plan = explained(_captured(tasks.has_to_hand_over))
    assert "Seq Scan" not in {node["Node Type"] for node in nodes(plan)}
    assert tasks.has_to_hand_over() == (False, False, False)


def test_without_its_index_the_same_question_is_complained_about(large_ledger):
    for question in OWN_INDEX:
        sql, index, takes = QUESTIONS[question]
        with transaction.atomic():
            execute(f"DROP INDEX {index}")
            wrong = complaints(explained(sql()), index, takes)
            transaction.set_rollback(True)
        assert len(wrong) >= 2, (question, wrong)  # another plan, and too much is read by it


def test_batches_come_in_the_order_of_their_index(large_ledger):
    for question in ("never dispatched", "other re-checks", "pruning"):
        plan = explained(QUESTIONS[question][0]())
        assert "Sort" not in {node["Node Type"] for node in nodes(plan)}, question


def _whole_scans(queries) -> list[str]:
    """Those of these statements whose plan reads the whole ledger or all attempts."""
    found = []
    for query in queries:
        if query["sql"].split(None, 1)[0].upper() not in ("SELECT", "WITH", "UPDATE", "DELETE"):
            continue
        for node in nodes(explained(query["sql"], analyze=False)):
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] in (
                "tasks_backgroundtask",
                "tasks_taskattempt",
            ):
                found.append(query["sql"])
    return found


def test_nothing_that_a_round_or_a_worker_asks_reads_the_whole_ledger(large_ledger, settings):
    settings.TEAMDESK_ROUND_BUDGET_SECONDS = 60
    execute(
        "INSERT INTO tasks_taskattempt (task_id, run, attempt, execution_id, worker,"
        " started_at, error, traceback, outcome, finished_at)"
        " SELECT id, 0, 1, gen_random_uuid(), '', now(), '', '', 'completed', now()"
        " FROM tasks_backgroundtask WHERE status = 'COMPLETED'"
    )
    execute("ANALYZE tasks_taskattempt")
    with CaptureQueriesContext(connection) as queries:
        report = dispatch_once()
        task = tasks.enqueue("CANARY_SHORT")
        assert run_job(task.pk, task.run) == TaskStatus.COMPLETED
    assert report.enqueued >= NEW
    assert report.recovered == EXPIRED
    assert _whole_scans(queries) == []


def test_a_question_that_reads_the_whole_ledger_is_found(large_ledger):
    with CaptureQueriesContext(connection) as queries:
        tasks.filter(last_error="no index knows this").count()
    assert len(_whole_scans(queries)) == 1
