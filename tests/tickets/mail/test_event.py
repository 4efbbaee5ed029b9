"""One event: notifications, deliveries and MAIL tasks, all of them or nothing."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tickets.models import MailDelivery, Notification, NotificationKind, Ticket, User
from tickets.models.notification_kind import mail_field

pytestmark = pytest.mark.django_db


def notify(people, **more):
    return Notification.objects.notify(people, **({"kind": "assigned", "cause": "c:1"} | more))


def test_an_assignment_is_mailed_to_the_assignee(assigned, alice, bob):
    delivery = MailDelivery.objects.get()
    assert (delivery.recipient, delivery.address) == (bob, "bob@example.org")
    assert (delivery.kind, delivery.because, delivery.ticket) == ("assigned", "assignee", assigned)
    assert delivery.status == "queued"
    task = delivery.task
    assert (task.kind, task.payload) == ("MAIL", {"delivery": delivery.pk})
    assert (task.ticket, task.owner, task.team) == (assigned, bob, assigned.team)
    assert task.max_attempts == 7


def test_a_reminder_is_mailed_to_creator_and_assignee(assigned, alice, bob, yesterday):
    MailDelivery.objects.all().delete()
    assigned.set_due(yesterday, by=alice)
    assert run_job(BackgroundTask.objects.get(kind="REMINDER").pk, 0) == TaskStatus.COMPLETED
    told = MailDelivery.objects.filter(kind="reminder").order_by("recipient__username")
    assert [(each.recipient, each.because) for each in told] == [
        (alice, "creator"),
        (bob, "assignee"),
    ]


@pytest.mark.django_db(transaction=True)
def test_an_export_is_mailed_to_who_asked(assigned, alice):
    from exports.models import Export

    MailDelivery.objects.all().delete()
    export = Export.objects.request(alice, {}, ["id"])
    assert run_job(export.pk, 0) == TaskStatus.COMPLETED
    delivery = MailDelivery.objects.get()
    assert (delivery.recipient, delivery.because) == (alice, "requester")
    assert delivery.url == f"/exports/{export.pk}/"


def test_who_did_it_is_not_told(alice, support):
    Ticket.objects.open(by=alice, team=support, subject="Mine", assignee=alice)
    assert not MailDelivery.objects.exists()


def test_a_comment_is_mailed_only_to_who_asked_for_that(assigned, alice, bob, vera):
    MailDelivery.objects.all().delete()
    assigned.comment(by=bob, body="First.")
    assert not MailDelivery.objects.exists()
    alice.mail_commented = True
    alice.save()
    assigned.comment(by=bob, body="Second.\nLine two.")
    delivery = MailDelivery.objects.get()
    assert (delivery.recipient, delivery.excerpt) == (alice, "Bob Berg: Second.\nLine two.")


@pytest.mark.parametrize("kind", NotificationKind.values)
def test_every_event_has_its_own_preference(bob, kind):
    for other in NotificationKind.values:
        setattr(bob, mail_field(other), other == kind)
    bob.save()
    for other in NotificationKind.values:
        notify([bob], kind=other, cause=f"{other}:1")
    assert list(MailDelivery.objects.values_list("kind", flat=True)) == [kind]
    assert Notification.objects.of(bob).count() == len(NotificationKind)


def test_by_default_comments_alone_are_not_mailed():
    person = User()
    wanted = {kind for kind in NotificationKind.values if person.wants_mail(kind)}
    assert wanted == {"reminder", "assigned", "export_ready", "export_paused"}


def test_a_repeated_call_adds_neither_delivery_nor_task(alice, bob):
    assert notify([alice, bob]) == 2
    assert notify([alice, bob]) == 0
    assert MailDelivery.objects.count() == BackgroundTask.objects.filter(kind="MAIL").count() == 2


def test_the_others_are_told_although_one_was_told_before(alice, bob):
    notify([alice])
    assert notify([alice, bob]) == 1
    assert [each.recipient for each in MailDelivery.objects.order_by("pk")] == [alice, bob]


def test_who_cannot_be_mailed_is_told_in_the_application_alone(alice, bob, vera, charlie, ticket):
    alice.email, bob.mail_assigned, charlie.is_active = "", False, False
    for person in (alice, bob, charlie):
        person.save()
    assert notify([alice, bob, vera, charlie], ticket=ticket) == 3
    assert MailDelivery.objects.get().recipient == vera


def test_an_outsider_gets_nothing(ticket, charlie):
    assert notify([charlie], ticket=ticket) == 0
    assert not MailDelivery.objects.exists()


def test_without_a_mail_server_nothing_is_queued(settings, bob):
    settings.TEAMDESK_MAIL = False
    assert notify([bob]) == 1
    assert not BackgroundTask.objects.exists()


@pytest.mark.parametrize("table", ["tickets_maildelivery", "tasks_backgroundtask"])
def test_all_or_nothing(alice, bob, ticket, table):
    """PostgreSQL refuses the last row that the event writes there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_the_second() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF (SELECT count(*) FROM {table}) > 1 THEN RAISE EXCEPTION 'no room'; END IF; "
            "RETURN NULL; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER refuse AFTER INSERT ON {table} FOR EACH ROW "
            "EXECUTE FUNCTION refuse_the_second()"
        )
    with pytest.raises(DatabaseError, match="no room"), transaction.atomic():
        ticket.set_priority("high", by=alice)
        notify([alice, bob], ticket=ticket)
    ticket.refresh_from_db()
    assert ticket.priority == "normal"
    assert not Notification.objects.exists()
    assert not MailDelivery.objects.exists()
    assert not BackgroundTask.objects.exists()


def test_alone_it_is_a_transaction_too(alice, bob, monkeypatch):
    def full(*args, **kwargs):
        raise RuntimeError("no room")

    monkeypatch.setattr(type(BackgroundTask.objects.all()), "enqueue", full)
    with pytest.raises(RuntimeError):
        notify([alice, bob])
    assert not Notification.objects.exists()
    assert not MailDelivery.objects.exists()


def test_message_ids_are_of_our_domain_and_differ(settings, alice, bob):
    settings.DEFAULT_FROM_EMAIL = "Hilfe <help@Bücher.example>"
    notify([alice, bob])
    ids = set(MailDelivery.objects.values_list("message_id", flat=True))
    assert len(ids) == 2
    assert all(each.endswith("@xn--bcher-kva.example>") for each in ids)


@pytest.mark.django_db(transaction=True)
def test_the_ledger_forgets_them_with_their_tasks(alice, bob):
    notify([alice, bob])
    for_alice, for_bob = MailDelivery.objects.order_by("pk")
    for_alice.task.cancel()
    assert BackgroundTask.objects.prune(timedelta(0)) == 1
    assert MailDelivery.objects.get() == for_bob
