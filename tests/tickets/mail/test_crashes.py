"""Real workers that are killed or frozen while they talk to a real mail server."""

import os
import signal

import pytest
from django.db import connection
from django.db.models.functions import Now

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tickets.models import MailDelivery

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

# The right to send and the lease end soon, so that the tests need not wait long for it.
SOON = {"TEAMDESK_LEASE_SECONDS": "2", "TEAMDESK_RENEWAL_SECONDS": "1"}


@pytest.fixture
def worker(processes, smtp, settings):
    """``worker(**environment)``: a worker whose mail leaves through ``smtp``."""
    settings.TEAMDESK_LEASE_SECONDS = 2

    def start(**environment):
        url = f"smtp://127.0.0.1:{smtp.port}"
        include = "tests.tickets.mail.kinds"
        return processes.worker(include=include, EMAIL_URL=url, **SOON, **environment)

    return start


@pytest.fixture
def dispatched_until(delivery, wait_until):
    """``dispatched_until(condition, "what")``: rounds go on until the delivery's row fulfils it."""

    def rounds(condition, what):
        def look():
            dispatch_once()
            delivery.refresh_from_db()
            delivery.task.refresh_from_db()
            return condition(delivery)

        wait_until(look, what, 60)

    return rounds


def outcomes(delivery):
    return list(delivery.task.attempts.order_by("pk").values_list("outcome", flat=True))


def test_it_is_sent_by_a_worker(worker, smtp, delivery, dispatched_until):
    worker()
    dispatched_until(lambda each: each.task.status == TaskStatus.COMPLETED, "sent")
    assert delivery.status == "sent"
    assert len(smtp.received) == 1


def test_killed_between_the_servers_yes_and_its_record(
    worker, smtp, delivery, dispatched_until, tmp_path
):
    """The one window that nothing closes: sent again, and by its Message-ID known as the same."""
    flag = tmp_path / "die"
    flag.touch()
    worker(TEST_DIE_ONCE=str(flag))

    def is_sent(delivery):
        # Whether the queue's word of the death comes before the recovery decides whether the next
        # attempt climbs the ladder. Nobody waits for its first minute, or a re-check, here.
        waiting = BackgroundTask.objects.waiting().filter(pk=delivery.task_id, run_at__gt=Now())
        waiting.update(run_at=Now(), dispatched_at=None)
        return delivery.status == "sent"

    dispatched_until(is_sent, "sent after a death")
    assert not flag.exists()
    assert [each["Message-ID"] for each in smtp.received] == [delivery.message_id] * 2
    dispatched_until(lambda each: each.task.status == TaskStatus.COMPLETED, "completed")
    assert outcomes(delivery)[0] == "lease_expired"
    assert outcomes(delivery)[-1] == "completed"


def test_killed_before_the_servers_yes_sends_once(worker, smtp, delivery, dispatched_until):
    smtp.held = "RCPT"
    first = worker()
    dispatched_until(lambda each: smtp.waiting.is_set(), "the server is asked")
    first.kill()
    smtp.held = ""
    smtp.gate.set()
    worker()
    dispatched_until(lambda each: each.task.status == TaskStatus.COMPLETED, "sent")
    assert len(smtp.received) == 1


def test_frozen_in_the_call_and_awake_after_another_sent_it(
    worker, smtp, delivery, dispatched_until, wait_until
):
    """Its right to send has ended by the time anybody else has it: it does not go on."""
    smtp.held = "RCPT"
    frozen = worker()
    dispatched_until(lambda each: smtp.waiting.is_set(), "the server is asked")
    group = [frozen.pid, *(child.pid for child in frozen.children())]
    for pid in group:
        os.kill(pid, signal.SIGSTOP)
    smtp.held = ""  # for the next; the frozen one's question stays unanswered
    worker()
    dispatched_until(lambda each: each.task.status == TaskStatus.COMPLETED, "sent by the other")
    assert len(smtp.received) == 1
    smtp.gate.set()  # the answer that the frozen one waited for
    for pid in group:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: "too long" in frozen.output or "taken from" in frozen.output, "it woke")
    frozen.stop()
    assert len(smtp.received) == 1
    delivery.refresh_from_db()
    assert (delivery.status, delivery.reason) == ("sent", "")


def test_cut_off_from_the_database_at_the_servers_yes(worker, smtp, delivery, dispatched_until):
    """It connects again and says what it knows."""
    smtp.held = "DATA"
    worker()
    dispatched_until(lambda each: smtp.waiting.is_set(), "the server has it all")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0] > 0
    smtp.gate.set()
    dispatched_until(lambda each: each.task.status == TaskStatus.COMPLETED, "sent")
    assert len(smtp.received) == 1
    assert (delivery.status, outcomes(delivery)) == ("sent", ["completed"])


def test_a_shut_down_worker_hands_it_back_and_another_sends_it(
    worker, smtp, delivery, dispatched_until
):
    smtp.held = "RCPT"
    first = worker()
    dispatched_until(lambda each: smtp.waiting.is_set(), "the server is asked")
    first.stop()
    delivery.refresh_from_db()
    assert delivery.sending_by is None
    smtp.held = ""
    smtp.gate.set()
    worker()
    dispatched_until(lambda each: each.task.status == TaskStatus.COMPLETED, "sent")
    assert len(smtp.received) == 1
    assert MailDelivery.objects.count() == BackgroundTask.objects.filter(kind="MAIL").count() == 1
