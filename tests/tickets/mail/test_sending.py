"""Two executions of one delivery: at most one talks to the mail server."""

import pytest

from tasks.lease import Lease, LeaseLost
from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tickets.mail.jobs import send_mail

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def held(smtp):
    """The server waits with its answer until ``smtp.gate`` is set."""
    smtp.held = "RCPT"
    return smtp


def new_run(delivery, root):
    """A person cancels what is being sent and wants it again: now two executions are under way."""
    delivery.task.refresh_from_db()
    assert delivery.task.cancel(by=root)
    delivery.task.refresh_from_db()
    assert delivery.task.retry(by=root)


def test_the_second_waits_while_the_first_may_be_sending(held, actor, delivery, root, run):
    first = actor("first")
    sending = first.start(run_job, delivery.task_id, 0)
    assert held.waiting.wait(30)
    new_run(delivery, root)
    assert run(delivery) == TaskStatus.WAITING
    assert "Another execution may be sending it" in delivery.task.last_error
    assert delivery.task.run_at == delivery.sending_until
    assert delivery.task.max_attempts == 8  # it cost no attempt
    held.gate.set()
    assert sending.result(30) is None  # its lease was taken
    delivery.refresh_from_db()
    assert delivery.status == "sent"  # which is a fact all the same
    BackgroundTask.objects.update(run_at=delivery.created_at)
    assert run(delivery) == TaskStatus.COMPLETED
    assert len(held.received) == 1


def test_the_second_goes_on_when_the_firsts_right_has_ended(
    held, actor, delivery, root, run, settings, wait_until
):
    settings.TEAMDESK_LEASE_SECONDS = 1
    first = actor("first")
    sending = first.start(run_job, delivery.task_id, 0)
    assert held.waiting.wait(30)
    new_run(delivery, root)
    assert sending.result(30) is None  # its call was cut
    held.held = ""
    delivery.refresh_from_db()
    assert (delivery.status, delivery.sending_by) == ("queued", None)
    assert run(delivery) == TaskStatus.COMPLETED
    assert len(held.received) == 1


def test_who_lost_its_lease_does_not_begin(smtp, delivery, root):
    lease = Lease.claim(delivery.task_id, 0)
    new_run(delivery, root)
    with pytest.raises(LeaseLost):
        send_mail(lease.task, lease)
    assert smtp.attempts == []
    delivery.refresh_from_db()
    assert delivery.sending_by is None


def test_recovery_waits_for_who_just_begins(smtp, delivery, actor, settings):
    """The renewal and the right are one transaction: there is no moment between them."""
    from tasks.recovery import recover_together

    lease = Lease.claim(delivery.task_id, 0)
    sender = actor("sender")
    sender.begin()
    assert sender.do(delivery.begin_sending, lease, 45)
    settings.TEAMDESK_LEASE_SECONDS = 0
    assert recover_together([lease.task]) == {}
    sender.commit()
    delivery.refresh_from_db()
    assert delivery.sending_by == lease.execution_id


def test_what_was_said_by_a_stale_one_about_failing_changes_nothing(smtp, delivery, root, run):
    stale = Lease.claim(delivery.task_id, 0)
    assert delivery.begin_sending(stale, 0)  # a right that has ended already
    new_run(delivery, root)
    fresh = Lease.claim(delivery.task_id, 1)
    assert delivery.begin_sending(fresh, 45)
    assert delivery.record_failure(stale, "late", is_final=True) is False
    delivery.refresh_from_db()
    assert (delivery.status, delivery.reason) == ("queued", "")
    assert delivery.sending_by == fresh.execution_id


def test_sent_is_said_once_and_stays(delivery):
    assert delivery.record_sent("250 first")
    assert not delivery.record_sent("250 second")
    assert not delivery.skip("late")
    delivery.refresh_from_db()
    assert (delivery.status, delivery.answer) == ("sent", "250 first")


def test_sent_is_recorded_although_the_completion_fails(smtp, delivery, run, monkeypatch):
    def cut_off(self, effect=None):
        raise ConnectionError("no database")

    monkeypatch.setattr(Lease, "complete", cut_off)
    assert run(delivery) == TaskStatus.WAITING
    assert delivery.status == "sent"
    monkeypatch.undo()
    BackgroundTask.objects.update(run_at=delivery.created_at)
    assert len(smtp.received) == 1
