"""What the tests of the helpdesk share."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tasks.models import BackgroundTask
from tickets.models import Ticket


@pytest.fixture
def tomorrow():
    return timezone.now() + timedelta(days=1)


@pytest.fixture
def next_week():
    return timezone.now() + timedelta(days=7)


@pytest.fixture
def yesterday():
    return timezone.now() - timedelta(days=1)


@pytest.fixture
def ticket(support, alice):
    """Opened by alice in the support team, assigned to nobody, without a due date."""
    return Ticket.objects.open(
        by=alice, team=support, subject="Printer", description="It burns.", tags=["fire"]
    )


@pytest.fixture
def waiting_reminders():
    """``waiting_reminders(ticket)`` → [(revision, run_at)] of its WAITING reminders."""

    def waiting_reminders(ticket):
        tasks = BackgroundTask.objects.waiting().filter(ticket=ticket, kind="REMINDER")
        return list(tasks.order_by("id").values_list("reminder_revision", "run_at"))

    return waiting_reminders


class Other(threading.Thread):
    """Another person at the same time: runs ``work`` on a connection of its own."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.value, self.error = work, None, None
        self.pid = None
        self._connected = threading.Event()
        self.start()
        assert self._connected.wait(30)

    def run(self):
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                self.pid = cursor.fetchone()[0]
            self._connected.set()
            self.value = self.work()
        except BaseException as error:
            self.error = error
        finally:
            self._connected.set()
            connection.close()

    def result(self):
        self.join(30)
        assert not self.is_alive(), "the other connection still waits"
        if self.error:
            raise self.error
        return self.value

    def is_blocked(self) -> bool:
        """Does it wait for a lock that someone else holds?"""
        with connection.cursor() as cursor:
            cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [self.pid])
            return cursor.fetchone()[0]


@pytest.fixture
def other():
    return Other
