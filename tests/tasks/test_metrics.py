"""What rounds and the pruning count, each once."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from tasks import metrics, registry
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskStatus
from tests import services

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue
HOUR = timedelta(hours=1)


def one(counted, name, *labels):
    return counted().get((name, *labels), 0)


# The dispatcher


def test_a_round_counts_what_it_handed_over(counted, empty_queue):
    enqueue("NOTE"), enqueue("NOTE")
    dispatch_once()
    assert one(counted, "teamdesk_rounds_total", "success") == 1
    assert one(counted, "teamdesk_round_duration_seconds_count") == 1
    assert one(counted, "teamdesk_handed_over_total", "enqueued") == 2
    assert one(counted, "teamdesk_dispatch_lag_seconds_count") == 2
    empty_queue.flushall()
    BackgroundTask.objects.update(dispatched_at=F("dispatched_at") - HOUR)
    dispatch_once()
    assert one(counted, "teamdesk_handed_over_total", "readded") == 2
    assert one(counted, "teamdesk_dispatch_lag_seconds_count") == 2  # only the first time


def test_the_lag_is_the_time_since_the_task_was_due(counted):
    task = enqueue("NOTE")
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=F("run_at") - HOUR)
    far_off = enqueue("NOTE")
    BackgroundTask.objects.filter(pk=far_off.pk).update(run_at=F("run_at") + HOUR)
    dispatch_once()
    assert one(counted, "teamdesk_dispatch_lag_seconds_count") == 1
    assert one(counted, "teamdesk_dispatch_lag_seconds_sum") == pytest.approx(3600, abs=60)


def test_a_round_with_a_fault_is_counted_as_one(counted, settings):
    settings.REDIS_URL = f"unix://{services.FOLDER}/nobody.sock"
    enqueue("NOTE")
    with pytest.raises(RoundFault):
        dispatch_once()
    assert one(counted, "teamdesk_rounds_total", "fault") == 1
    assert one(counted, "teamdesk_rounds_total", "success") == 0


def test_a_recovery_and_its_dead_letter_are_counted(counted):
    again, dead = enqueue("NOTE"), enqueue("NOTE")
    for task in (again, dead):
        Lease.claim(task.pk, 0)
    BackgroundTask.objects.update(updated_at=F("updated_at") - HOUR)
    BackgroundTask.objects.filter(pk=dead.pk).update(max_attempts=1)
    dispatch_once()
    assert one(counted, "teamdesk_lease_recoveries_total", "NOTE") == 2
    assert one(counted, "teamdesk_dead_letters_total", "NOTE") == 1


def test_what_is_forgotten_is_counted(counted):
    BackgroundTask.objects.create(
        kind="NOTE", status=TaskStatus.COMPLETED, finished_at=Now() - timedelta(days=9)
    )
    BackgroundTask.objects.prune(timedelta(days=8))
    assert one(counted, "teamdesk_pruned_tasks_total") == 1


def test_every_series_is_there_before_its_first_event():
    metrics.prepare()
    names = {
        (sample.name, *sample.labels.values())
        for metric in metrics.ALL
        for family in metric.collect()
        for sample in family.samples
    }
    for kind in (*registry.kinds(), "other"):
        assert ("teamdesk_dead_letters_total", kind) in names
        assert ("teamdesk_task_attempts_total", kind, "failed") in names
    assert ("teamdesk_claims_refused_total", "duplicate") in names
