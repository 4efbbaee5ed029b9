"""django-tasks-db: Django's own tasks in a table, which its workers poll."""

from django_tasks import task

from bench.arms.effect import write_effect

TABLES = ("django_tasks_database_dbtaskresult",)


@task()
def run(job: int) -> None:
    write_effect(job)


def enqueue(job: int, bulk: bool = False) -> None:
    run.enqueue(job)
