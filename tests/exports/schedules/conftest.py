"""Scheduled exports as the tests make them, let their time come and run them."""

from datetime import time, timedelta

import pytest
from django.contrib.messages import get_messages
from django.db.models.functions import Now

from exports.models import Export, ScheduledExport
from tasks.models import BackgroundTask
from tasks.worker import run_job

KIND = "SCHEDULED_EXPORT"
# Every Monday at 8 in Berlin, the open tickets.
CHOICES = {
    "name": "Open tickets",
    "filters": {"status": ["open"]},
    "columns": ["id", "subject"],
    "rhythm": "weekly",
    "weekdays": [1],
    "time_of_day": time(8),
    "zone": "Europe/Berlin",
}


def schedule(by, **choices) -> ScheduledExport:
    return ScheduledExport.objects.schedule(by, **CHOICES | choices)


@pytest.fixture
def scheduled(transactional_db, alice):
    return schedule(alice)


def reread(scheduled) -> ScheduledExport:
    return ScheduledExport.objects.with_state().get(pk=scheduled.pk)


def tasks(*statuses):
    """Of all scheduled exports, oldest first."""
    found = BackgroundTask.objects.filter(kind=KIND).order_by("pk")
    return found.filter(status__in=statuses) if statuses else found


def waiting() -> list[tuple]:
    """(revision, run_at) of each waiting task."""
    return [(task.payload["revision"], task.run_at) for task in tasks("WAITING")]


def its_time_comes(scheduled, ago=timedelta(minutes=1)) -> BackgroundTask:
    """It is due since ``ago``. Returns its task."""
    task = tasks("WAITING").get(payload__schedule=scheduled.pk)
    ScheduledExport.objects.filter(pk=scheduled.pk).update(next_run_at=Now() - ago)
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=Now() - ago)
    task.refresh_from_db()
    return task


def run_due(scheduled):
    """Its time comes, and a worker runs it. Returns the row as it is then."""
    assert run_job(its_time_comes(scheduled).pk, 0) == "COMPLETED"
    return reread(scheduled)


def exports():
    return Export.objects.order_by("pk")


# In the browser


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def form(**changes) -> dict:
    """What a browser posts."""
    return {
        "name": "Open tickets",
        "status": ["open"],
        "rhythm": "weekly",
        "weekdays": ["1", "5"],
        "day_of_month": "1",
        "time_of_day": "08:00",
        "zone": "Europe/Berlin",
        "format": "csv",
        "delimiter": ";",
        "time_zone": "",
        "row_kind": "tickets",
        "columns": ["id", "subject"],
    } | changes


def told(answer) -> str:
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))
