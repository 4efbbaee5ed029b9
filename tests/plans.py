"""Tables large enough for a planner to care, and the plans it makes then."""

import json

from django.db import connection

from tasks.models import BackgroundTask


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def copies(of: int, rows: int, **changed: str) -> None:
    """``rows`` copies of a task; ``changed``: SQL for columns, with ``i`` from 1 to ``rows``."""
    columns = [field.column for field in BackgroundTask._meta.concrete_fields]
    columns.remove("id")
    values = [changed.get(column, f"task.{column}") for column in columns]
    execute(
        f"INSERT INTO tasks_backgroundtask ({', '.join(columns)}) SELECT {', '.join(values)} "
        f"FROM generate_series(1, {rows}) i, tasks_backgroundtask task WHERE task.id = {of}"
    )


def explained(sql: str, analyze: bool = True) -> dict:
    options = "ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON" if analyze else "FORMAT JSON"
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN ({options}) {sql.replace('%', '%%')}", [])
        (plan,) = cursor.fetchone()
    return (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]


def nodes(plan: dict):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def indexes(plan: dict) -> set[str]:
    return {node["Index Name"] for node in nodes(plan) if "Index Name" in node}


def rows_read(node: dict) -> float:
    each = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return node["Actual Loops"] * sum(node.get(key, 0) for key in each)
