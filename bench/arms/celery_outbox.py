"""django-celery-outbox: a table in front of Celery, emptied by its relay."""

from django_celery_outbox import OutboxCelery

from bench.arms.effect import write_effect

TABLES = ("celery_outbox",)

app = OutboxCelery("bench")
app.config_from_object("django.conf:settings", namespace="CELERY")


@app.task(name="bench.job")
def run(job: int) -> None:
    write_effect(job)


def enqueue(job: int, bulk: bool = False) -> None:
    run.delay(job)
