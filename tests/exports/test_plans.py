"""The plans of what exports ask the ledger: whose turn it is, and how many one has under way.

On a ledger with many exports that are over, a wrong plan reads thousands of rows.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from exports import turns
from exports.models import Export
from tests.plans import copies, execute, explained, indexes, nodes, rows_read

pytestmark = pytest.mark.django_db
FINISHED, LIVE = 5_000, 5  # of alice, beside one of bob


@pytest.fixture
def many_exports(alice, bob) -> Export:
    """alice's only export that did not begin yet. bob waits too."""
    hers = Export.objects.request(alice, {}, ["id"])
    Export.objects.request(bob, {}, ["id"])
    ago = "now() - i * interval '1 hour'"
    copies(hers.pk, FINISHED, status="'COMPLETED'", run_at=ago, finished_at=ago)
    copies(hers.pk, LIVE - 1, run_at=ago)
    columns = [field.column for field in Export._meta.concrete_fields]
    special = {"task_id": "task.id", "began_at": "task.run_at"}
    values = [special.get(column, f"export.{column}") for column in columns]
    execute(
        f"INSERT INTO exports_export ({', '.join(columns)}) SELECT {', '.join(values)}"
        f" FROM exports_export export, tasks_backgroundtask task WHERE export.task_id = {hers.pk}"
        f" AND task.owner_id = {alice.pk} AND task.id <> {hers.pk} AND task.kind = 'EXPORT'"
    )
    for table in ("tasks_backgroundtask", "exports_export"):
        execute(f"ANALYZE {table}")
    return hers


def _ledger_rows(plan: dict) -> float:
    ledger = "tasks_backgroundtask"
    return sum(rows_read(node) for node in nodes(plan) if node.get("Relation Name") == ledger)


def test_the_count_reads_the_exports_under_way(many_exports, alice):
    with CaptureQueriesContext(connection) as queries:
        Export.objects.refuse_more_of(alice)
    (counting,) = [query["sql"] for query in queries if "EXPORT" in query["sql"]][:1]
    plan = explained(counting)
    assert "exports_live" in indexes(plan)
    assert _ledger_rows(plan) <= LIVE


def test_turns_read_the_exports_under_way_and_the_last_served(many_exports, alice):
    with connection.cursor() as cursor:
        asked = cursor.mogrify(
            turns._OTHERS_COME_FIRST, {"export": many_exports.pk, "person": alice.pk}
        )
    plan = explained(asked)
    assert {"exports_live", "export_last_turn"} <= indexes(plan)
    assert _ledger_rows(plan) <= LIVE + 1
