"""A worker is killed in the middle of an export: its half of a file is never seen, nor kept."""

import csv
import io
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from exports.models import Export
from tasks.models import BackgroundTask, TaskStatus
from tickets.models import Ticket

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def test_the_next_attempt_starts_clean_and_no_orphans_remain(
    processes, visitor, alice, support, wait_until, tmp_path
):
    Ticket.objects.bulk_create(
        Ticket(team=support, creator=alice, subject=f"Lift {number}", description="stuck " * 700)
        for number in range(400)
    )
    export = Export.objects.request(alice, {"sort": "id"}, ["id", "description"])
    _, address = processes.web()
    agent = visitor(address, "alice")
    path = f"/exports/{export.pk}/download/"
    held = processes.worker(
        "long", include="tests.stories.held_export", HELD_UNTIL=str(tmp_path / "never")
    )
    processes.beat()

    wait_until(export.chunks.exists, "the first chunk is stored")
    killed = export.chunks.get().execution_id
    assert agent.see(path).status_code == 409
    held.kill()
    assert agent.see(path, headers={"Range": "bytes=0-9"}).status_code == 409
    ran_last = Now() - timedelta(hours=1)
    BackgroundTask.objects.filter(pk=export.pk).update(updated_at=ran_last)
    orphans = export.chunks.filter(execution_id=killed)
    wait_until(lambda: not orphans.exists(), "its half is removed")

    processes.worker("long")
    completed = BackgroundTask.objects.filter(pk=export.pk, status=TaskStatus.COMPLETED)
    wait_until(completed.exists, "the next attempt completes")
    export.refresh_from_db()
    assert set(export.chunks.values_list("execution_id", flat=True)) == {export.execution_id}
    assert killed != export.execution_id
    file = agent.see(path).content
    assert len(file) == export.size > 2**20  # chunks enough for a half
    rows = list(csv.reader(io.StringIO(file.decode("utf-8-sig"), newline="")))[1:]
    ids = Ticket.objects.order_by("pk").values_list("pk", flat=True)
    assert [int(row[0]) for row in rows] == list(ids)
