"""PostgreSQL keeps its connections open and answers nothing: a frozen server, a proxy that lost it.

No timeout of the server's fires then, and TCP sees a peer that is alive.
"""

import subprocess
import sys

import pytest
from django.db import OperationalError, close_old_connections, connection

from tasks import patience
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, DispatcherStatus, TaskStatus
from tasks.patience import PatientConnection
from tasks.worker import run_job
from tests.faults.proxy import through
from tests.processes import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

enqueue = BackgroundTask.objects.enqueue


@pytest.fixture
def impatient(monkeypatch):
    """Half a second instead of half a minute, and no rest between tries."""
    monkeypatch.setattr(PatientConnection, "patience", 0.5)
    monkeypatch.setattr("tasks.transactions.sleep", lambda seconds: None)


@pytest.fixture
def distant(actor, postgres_proxy):
    """An actor whose connections go through the proxy."""
    distant = actor("distant")
    distant.do(through, postgres_proxy)
    return distant


def ask():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 42")
        return cursor.fetchone()[0]


def test_an_answer_that_does_not_come_is_given_up(distant, postgres_proxy, impatient):
    assert distant.do(ask) == 42
    postgres_proxy.silence()
    with pytest.raises(OperationalError, match="gave no answer"):
        distant.do(ask)
    assert distant.do(lambda: connection.connection.closed)
    postgres_proxy.heal()
    distant.do(close_old_connections)  # as every round and every message begins
    assert distant.do(ask) == 42


def test_what_sets_a_session_up_is_given_up_too(distant, postgres_proxy, impatient):
    """Django speaks to a new connection before anybody can be told that there is one."""
    # One that PostgreSQL does not have by itself, so that it must be set.
    distant.do(lambda: setattr(connection, "timezone_name", "Asia/Tokyo"))
    distant.do(lambda: connection.close())
    postgres_proxy.silence_at(b"TimeZone")
    with pytest.raises(OperationalError, match="gave no answer"):
        distant.do(ask)


def test_a_transaction_in_which_no_answer_comes_ends_without_waiting_again(
    distant, postgres_proxy, impatient, notes
):
    task = enqueue("NOTE")
    lease = distant.do(Lease.claim, task.pk, 0)
    postgres_proxy.silence_at(b"tasks_taskattempt")  # the attempt is closed, then comes COMMIT
    finish = distant.start(lease.complete)
    with pytest.raises(OperationalError):
        finish.result(60)
    postgres_proxy.cut()
    task.refresh_from_db()
    assert task.status == TaskStatus.RUNNING


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(b"pg_try_advisory_xact_lock", id="at its lock"),
        pytest.param(b"last_started_at", id="at its start"),
        pytest.param(b"is_due", id="in its scan"),
        pytest.param(b"handed_over", id="between publishing and stamping"),
        pytest.param(b"last_succeeded_at", id="at its end"),
    ],
)
def test_a_round_comes_to_an_end_and_the_next_one_does_the_work(
    distant, postgres_proxy, impatient, notes, place, empty_queue
):
    tasks = [enqueue("NOTE") for _ in range(3)]
    postgres_proxy.silence_at(place)
    stuck = distant.start(dispatch_once)
    with pytest.raises((OperationalError, RoundFault)):
        stuck.result(60)
    assert postgres_proxy.is_silent()

    postgres_proxy.heal()
    distant.do(close_old_connections)
    distant.do(dispatch_once, wait_seconds=20)
    assert DispatcherStatus.current().last_succeeded_at
    stamped = BackgroundTask.objects.filter(dispatched_at__isnull=False)
    assert stamped.count() == 3
    assert empty_queue.llen("short") >= 3
    for task in tasks:
        run_job(task.pk, 0)
        run_job(task.pk, 0)
    assert notes() == [(task.pk, 0) for task in tasks]


@pytest.mark.processes
def test_beat_goes_on_when_it_heals(processes, postgres_proxy, notes, wait_until):
    beat = processes.beat(DATABASE_URL=postgres_proxy.url, TEAMDESK_STATEMENT_SECONDS="1")
    wait_until(lambda: DispatcherStatus.current().last_succeeded_at, "a first round")
    postgres_proxy.silence_at(b"pg_try_advisory_xact_lock")
    wait_until(postgres_proxy.is_silent, "the next round begins")
    task = enqueue("NOTE")
    wait_until(lambda: "gave no answer" in beat.output, "the round is given up", 60)
    task.refresh_from_db()
    assert task.dispatched_at is None
    postgres_proxy.heal()
    wait_until(lambda: BackgroundTask.objects.get(pk=task.pk).dispatched_at, "work goes on", 60)
    assert beat.is_running()


@pytest.mark.parametrize("entry", ["teamdesk.wsgi", "teamdesk.asgi"])
def test_a_web_process_does_not_wait_for_ever_either(entry):
    told = subprocess.run(
        [
            *(sys.executable, "-c"),
            f"import {entry}; from django.db import connection as c; c.ensure_connection();"
            "print(type(c.connection).__name__, c.connection.patience)",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert told.stdout.split() == ["PatientConnection", str(patience.PAGE_SECONDS)], told.stderr
