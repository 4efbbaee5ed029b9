"""Accepted while nobody works: the promise in its smallest form.

With workers and beat stopped and the fast path off, an export stays as it was accepted. Once they
start, it completes, and its content is what the filter selects.
"""

import csv
import io

import pytest

from tasks.models import BackgroundTask, TaskStatus
from tickets.models import Ticket

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def test_an_export_waits_for_workers_and_then_completes(
    processes, visitor, alice, support, wait_until
):
    for number in range(30):
        priority = "urgent" if number % 3 == 0 else "normal"
        Ticket.objects.open(by=alice, team=support, subject=f"Printer {number}", priority=priority)
    _, address = processes.web(TEAMDESK_FAST_PATH="False")
    agent = visitor(address, "alice")

    answer = agent.submit("/exports/new/", as_json=True, priority="urgent")
    assert answer.status_code == 202
    accepted = answer.json()
    assert accepted["status"] == "WAITING"
    task = BackgroundTask.objects.get(pk=accepted["id"])
    assert (task.status, task.run, task.attempt, task.dispatched_at) == ("WAITING", 0, 0, None)
    assert agent.see(f"/exports/{task.pk}/download/").status_code == 409

    processes.worker("long")
    processes.beat()
    path = f"/exports/{task.pk}/"
    wait_until(lambda: agent.ask(path)["status"] == TaskStatus.COMPLETED)
    file = agent.see(f"{path}download/").content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(file, newline="")))
    urgent = Ticket.objects.filter(priority="urgent")
    assert {int(row["ID"]) for row in rows} == set(urgent.values_list("pk", flat=True))
    assert len(rows) == 10
