"""It is paused when its owner may not have it any more, and its owner told once."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db.models.functions import Now

from exports.models import Export
from exports.schedules.jobs import MOST_ATTEMPTS, WAIT
from tasks.models import BackgroundTask
from tasks.worker import run_job
from tests.exports.conftest import records_of
from tests.exports.schedules.conftest import (
    exports,
    its_time_comes,
    reread,
    run_due,
    schedule,
    tasks,
    waiting,
)
from tickets.models import MailDelivery, Notification
from tickets.sentences import of_notification, why_mailed

pytestmark = pytest.mark.django_db(transaction=True)


def is_paused(scheduled, reason):
    assert scheduled.is_paused
    assert reason in scheduled.pause_reason
    assert (scheduled.next_run_at, waiting(), exports().count()) == (None, [], 0)
    return True


def test_an_inactive_owner_is_not_told(scheduled, alice):
    alice.is_active = False
    alice.save()
    assert is_paused(run_due(scheduled), "is not active any more")
    assert not Notification.objects.exists()
    assert not MailDelivery.objects.exists()


def test_an_owner_without_a_team_is_told_by_bell_and_mail(scheduled, alice, support):
    support.memberships.filter(user=alice).delete()
    paused = run_due(scheduled)
    assert is_paused(paused, "does not belong to any team")
    told = Notification.objects.get()
    assert (told.user, told.kind, told.text) == (alice, "export_paused", "Open tickets")
    assert told.url == f"/exports/schedules/#schedule-{scheduled.pk}"
    assert of_notification(told) == "Your scheduled export “Open tickets” is paused"
    mail = MailDelivery.objects.get()
    assert (mail.recipient, mail.excerpt) == (alice, paused.pause_reason)
    assert why_mailed(mail) == "You get this mail because this scheduled export is yours."


def test_who_does_not_want_that_mail_gets_none(scheduled, alice, support):
    alice.mail_export_paused = False
    alice.save()
    support.memberships.filter(user=alice).delete()
    run_due(scheduled)
    assert Notification.objects.count() == 1
    assert not MailDelivery.objects.exists()


def test_filters_that_name_a_lost_team_do_not_fit(alice, support, billing):
    billing.memberships.create(user=alice, role="viewer")
    scheduled = schedule(alice, filters={"team": [str(support.pk)]})
    support.memberships.filter(user=alice).delete()
    assert is_paused(run_due(scheduled), "The filters do not fit any more: Team:")
    assert Notification.objects.get().kind == "export_paused"


def test_the_reason_is_in_its_owners_language(alice, support, billing):
    billing.memberships.create(user=alice, role="viewer")
    scheduled = schedule(alice, filters={"team": [str(support.pk)]})
    alice.language = "zh-hans"
    alice.save()
    support.memberships.filter(user=alice).delete()
    assert "筛选条件" in run_due(scheduled).pause_reason


def test_columns_that_are_no_more_pause_it(scheduled):
    scheduled.columns = ["mood"]
    scheduled.save()
    assert is_paused(run_due(scheduled), "There is no column “mood”")


def test_a_file_of_too_many_rows_pauses_it(scheduled, settings, ticket):
    ticket("Fire"), ticket("Flood")
    settings.TEAMDESK_EXPORT_MAX_ROWS = 1
    assert is_paused(run_due(scheduled), "A file may have 1 rows")
    assert Notification.objects.get().kind == "export_paused"


@pytest.fixture
def at_the_limit(settings, alice, scheduled):
    """alice has as many exports under way as she may. Her schedule's time has come."""
    settings.TEAMDESK_EXPORTS_PER_PERSON = 1
    under_way = Export.objects.request(alice, {"q": "other"})
    return under_way, its_time_comes(scheduled)


def test_a_limit_that_ends_by_itself_is_waited_for(scheduled, alice, at_the_limit):
    under_way, task = at_the_limit
    assert run_job(task.pk, 0) == "WAITING"
    task.refresh_from_db()
    assert "1 export under way" in task.last_error
    assert task.run_at - task.updated_at > WAIT - timedelta(seconds=1)
    assert not reread(scheduled).is_paused and not Notification.objects.exists()
    under_way.cancel(by=alice)
    BackgroundTask.objects.filter(pk=task.pk).update(run_at=Now())
    assert run_job(task.pk, 0) == "COMPLETED"
    assert reread(scheduled).last_export == exports().last() != under_way
    assert len(waiting()) == 1


def test_a_limit_that_does_not_end_pauses_it_after_an_hour(scheduled, at_the_limit):
    _under_way, task = at_the_limit
    BackgroundTask.objects.filter(pk=task.pk).update(
        attempt=MOST_ATTEMPTS - 1, max_attempts=MOST_ATTEMPTS + 6
    )
    assert run_job(task.pk, 0) == "COMPLETED"
    paused = reread(scheduled)
    assert "Wait until it has ended, or cancel it." in paused.pause_reason
    assert (waiting(), exports().count()) == ([], 1)
    assert Notification.objects.get().kind == "export_paused"


def test_what_a_limit_refuses_now_is_said(client, alice, scheduled, at_the_limit):
    client.force_login(alice)
    answer = client.post(f"/exports/schedules/{scheduled.pk}/run/", follow=True)
    assert "1 export under way" in answer.content.decode()
    assert exports().count() == 1


def test_it_is_told_once_however_often_the_message_comes(scheduled, alice, support):
    support.memberships.filter(user=alice).delete()
    task = its_time_comes(scheduled)
    assert [run_job(task.pk, 0) for _number in range(3)] == ["COMPLETED", None, None]
    assert Notification.objects.count() == MailDelivery.objects.count() == 1


def test_each_pause_is_told(scheduled, alice, support):
    for number in (1, 2):
        support.memberships.filter(user=alice).delete()
        run_due(scheduled)
        assert Notification.objects.count() == number
        support.memberships.create(user=alice, role="agent")
        assert reread(scheduled).resume(by=alice)


def test_it_is_not_resumed_while_the_reason_holds(scheduled, alice, support):
    support.memberships.filter(user=alice).delete()
    paused = run_due(scheduled)
    with pytest.raises(ValidationError, match="does not belong to any team"):
        paused.resume(by=alice)
    with pytest.raises(ValidationError, match="does not belong to any team"):
        paused.run_now(by=alice)
    assert reread(scheduled).is_paused
    support.memberships.create(user=alice, role="viewer")
    assert paused.resume(by=alice)
    resumed = reread(scheduled)
    assert (resumed.pause_reason, len(waiting())) == ("", 1)


def test_a_lost_team_among_several_is_no_reason(alice, support, billing, ticket, run):
    """The file has what its owner may see when it is made."""
    billing.memberships.create(user=alice, role="viewer")
    scheduled = schedule(alice)
    ticket("Fire", team=support)
    invoice = ticket("Invoice", team=billing)
    support.memberships.filter(user=alice).delete()
    scheduled = run_due(scheduled)
    assert not scheduled.is_paused
    assert records_of(run(exports().get())) == [{"id": str(invoice.pk), "subject": "Invoice"}]
    assert len(waiting()) == 1


def test_a_superuser_needs_no_team(root, support):
    scheduled = schedule(root)
    assert not run_due(scheduled).is_paused
    assert exports().get().requester == root


def test_a_deleted_owner_takes_it_along(scheduled, alice):
    task = its_time_comes(scheduled)
    alice.delete()
    assert run_job(task.pk, 0) == "COMPLETED"
    assert not exports().exists()
    assert list(tasks("WAITING")) == []
