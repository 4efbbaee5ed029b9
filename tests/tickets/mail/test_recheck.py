"""Rights and wishes are those of the moment it is sent."""

import pytest

from tasks.models import TaskStatus
from tickets.models import MailDelivery

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def skipped(smtp, delivery, run):
    """``skipped()``: it was skipped, for that reason; nobody was even named to the server."""

    def reason():
        assert run(delivery) == TaskStatus.COMPLETED
        assert delivery.status == "skipped"
        assert delivery.sent_at is None
        assert smtp.attempts == []
        return delivery.reason

    return reason


def test_who_left_the_team_is_not_told(skipped, bob, support):
    support.memberships.filter(user=bob).delete()
    assert "may not see it any more" in skipped()


def test_a_ticket_that_moved_out_of_sight_is_not_told(skipped, assigned, billing, root):
    assigned.edit(by=root, changes={"team": billing, "assignee": None})
    assert "may not see it any more" in skipped()


def test_who_became_inactive_is_not_told(skipped, bob):
    bob.is_active = False
    bob.save()
    assert "not active" in skipped()


def test_who_does_not_want_it_any_more_is_not_told(skipped, bob):
    bob.mail_assigned = False
    bob.save()
    assert "does not want" in skipped()


def test_who_has_no_address_any_more_is_not_told(skipped, bob):
    bob.email = ""
    bob.save()
    assert "no address" in skipped()


def test_a_ticket_that_is_gone_is_not_told(skipped, assigned):
    assigned.delete()
    assert "gone" in skipped()


def test_a_new_address_is_used_and_written_down(smtp, delivery, run, bob):
    bob.email = "bob@new.example"
    bob.save()
    assert run(delivery) == TaskStatus.COMPLETED
    assert smtp.recipients == ["bob@new.example"]
    assert delivery.address == "bob@new.example"


def test_a_delivery_that_went_with_its_recipient_ends_quietly(smtp, delivery, bob):
    from tasks.worker import run_job

    task = delivery.task
    bob.delete()
    assert not MailDelivery.objects.exists()
    assert run_job(task.pk, 0) == TaskStatus.COMPLETED
    assert smtp.attempts == []
