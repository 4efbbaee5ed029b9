"""Plain Celery, told after the commit: fast, and a crash in between loses the job."""

from celery import Celery

from bench.arms.effect import write_effect

TABLES = ()

app = Celery("bench")
app.config_from_object("django.conf:settings", namespace="CELERY")


@app.task(name="bench.job")
def run(job: int) -> None:
    write_effect(job)


def enqueue(job: int, bulk: bool = False) -> None:
    run.delay_on_commit(job)
