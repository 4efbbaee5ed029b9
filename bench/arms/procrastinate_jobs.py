"""procrastinate: jobs in PostgreSQL, workers woken by NOTIFY."""

from procrastinate.contrib.django import app

from bench.arms.effect import write_effect

TABLES = ("procrastinate_events", "procrastinate_jobs")


@app.task(name="bench.job")
def run(job: int) -> None:
    write_effect(job)


def enqueue(job: int, bulk: bool = False) -> None:
    run.defer(job=job)
