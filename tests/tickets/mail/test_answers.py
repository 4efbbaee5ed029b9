"""What the mail server answers, and what follows from it: another attempt, or the end."""

import pytest
from django.db.models import F

from tasks.models import BackgroundTask, TaskStatus
from tasks.registry import DEFAULT_LADDER
from tickets.models import MailDelivery, Notification

from .server import BadServer, SmtpServer, refuses_every_log_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # Passwords without TLS are what these servers are for.
    pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS"),
    pytest.mark.filterwarnings("ignore:auth_required == True but auth_require_tls == False"),
]


def assert_waits(delivery, *words):
    """On the first rung of the ladder, with the reason told."""
    assert delivery.task.status == TaskStatus.WAITING
    assert delivery.task.attempt == 1
    assert (delivery.task.run_at - delivery.task.updated_at).total_seconds() == DEFAULT_LADDER[0]
    assert (delivery.status, delivery.sending_by, delivery.sending_until) == ("queued", None, None)
    for word in words:
        assert word in delivery.reason
        assert word in delivery.task.last_error


def test_it_is_sent_and_the_servers_yes_is_kept(smtp, delivery, run):
    assert run(delivery) == TaskStatus.COMPLETED
    assert (delivery.status, delivery.answer) == ("sent", "250 2.0.0 Queued as 4711")
    assert delivery.sent_at and delivery.sending_by is None
    [message] = smtp.received
    assert smtp.recipients == ["bob@example.org"]
    assert message["Message-ID"] == delivery.message_id
    assert "Printer" in message.get_body(("plain",)).get_content()


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
def test_a_no_for_now_climbs_the_ladder(smtp, delivery, run, command):
    smtp.answers[command] = {"*": "451 4.3.0 Try again later"}
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "451 4.3.0 Try again later")
    assert smtp.received == []


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
def test_a_no_for_good_ends_it_with_the_servers_words(smtp, delivery, run, command):
    smtp.answers[command] = {"*": "550 5.1.1 No such user here"}
    assert run(delivery) == TaskStatus.FAILED
    assert (delivery.status, delivery.reason) == ("failed", "550 5.1.1 No such user here")
    assert delivery.task.last_error == "550 5.1.1 No such user here"
    assert delivery.task.attempt == 1
    assert delivery.sent_at is None


def test_a_failed_one_is_sent_by_a_persons_retry(smtp, delivery, run, root):
    smtp.answers["RCPT"] = {"*": "550 5.1.1 No such user here"}
    run(delivery)
    smtp.answers.clear()
    assert delivery.task.retry(by=root)
    assert run(delivery) == TaskStatus.COMPLETED
    assert (delivery.status, delivery.reason) == ("sent", "")


def test_the_ladders_end_is_told(smtp, delivery, run):
    smtp.answers["DATA"] = {"*": "452 4.2.2 Mailbox full"}
    BackgroundTask.objects.update(attempt=F("max_attempts") - 1)
    assert run(delivery) == TaskStatus.FAILED
    assert delivery.status == "failed"
    assert "452 4.2.2 Mailbox full" in delivery.reason


def test_one_bad_address_does_not_stop_the_others(smtp, alice, bob, vera, assigned, run):
    MailDelivery.objects.all().delete()
    Notification.objects.notify(
        [alice, bob, vera], kind="reminder", cause="r", ticket=assigned, text="Printer"
    )
    smtp.answers["RCPT"] = {
        "alice@example.org": "550 5.1.1 No such user",
        "bob@example.org": "450 4.2.0 Greylisted",
    }
    for_alice, for_bob, for_vera = MailDelivery.objects.order_by("pk")
    assert run(for_alice) == TaskStatus.FAILED
    assert run(for_bob) == TaskStatus.WAITING
    assert run(for_vera) == TaskStatus.COMPLETED
    assert smtp.recipients == ["vera@example.org"]


def test_a_duplicate_message_sends_once(smtp, delivery, run):
    assert run(delivery) == TaskStatus.COMPLETED
    assert run(delivery) is None
    BackgroundTask.objects.update(status=TaskStatus.WAITING, finished_at=None)
    assert run(delivery) == TaskStatus.COMPLETED
    assert len(smtp.received) == 1


def test_nobody_listens(smtp, delivery, run):
    smtp.stop()
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "refused")


def test_an_hour_without_a_server_loses_nothing(smtp, alice, bob, vera, assigned, run):
    """Frozen time: an hour passes by moving what is to come an hour nearer."""
    Notification.objects.notify([alice, vera], kind="reminder", cause="r", ticket=assigned)
    deliveries = list(MailDelivery.objects.order_by("pk"))
    assert len(deliveries) == 3
    smtp.stop()
    passed = 0
    while passed < 3600:
        for each in deliveries:
            assert run(each) == TaskStatus.WAITING
        task = deliveries[0].task
        wait = task.run_at - task.updated_at
        BackgroundTask.objects.update(run_at=F("run_at") - wait)
        passed += wait.total_seconds()
    assert task.attempt == 4  # after 1, 5, 30 minutes and 2 hours
    smtp.start()
    for each in deliveries:
        assert run(each) == TaskStatus.COMPLETED
    assert sorted(smtp.recipients) == ["alice@example.org", "bob@example.org", "vera@example.org"]
    assert {each.status for each in deliveries} == {"sent"}


# Faults of ours, not of the mail: they wait until someone mends them.


def test_a_refused_log_in_waits(mail_through, delivery, run):
    server = SmtpServer(
        auth_require_tls=False, auth_required=True, authenticator=refuses_every_log_in
    )
    mail_through(server, EMAIL_HOST_USER="desk", EMAIL_HOST_PASSWORD="hush")
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "535 5.7.8 Wrong password")
    assert "hush" not in delivery.task.attempts.get().traceback
    server.stop()


def test_a_log_in_that_is_missing_waits(mail_through, delivery, run):
    server = mail_through(SmtpServer(auth_require_tls=False, auth_required=True))
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "530 5.7.0")
    server.stop()


def test_a_server_without_tls_waits(smtp, mail_through, delivery, run):
    mail_through(smtp, EMAIL_USE_TLS=True)
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "STARTTLS")
    assert smtp.received == []


def test_a_server_that_turns_everyone_away_waits(mail_through, delivery, run):
    server = mail_through(BadServer([b"554 5.3.2 Not now\r\n"], b""))
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "554", "Not now")
    server.stop()


# Addresses


def test_an_address_in_utf8_needs_a_server_that_can(mail_through, delivery, run, bob):
    bob.email = "小林@example.org"
    bob.save()
    server = mail_through(SmtpServer(enable_SMTPUTF8=False))
    assert run(delivery) == TaskStatus.FAILED
    assert "no SMTPUTF8" in delivery.reason
    assert server.attempts == []
    server.stop()


def test_an_address_in_utf8_is_reached_through_one(smtp, delivery, run, bob):
    bob.email = "小林@example.org"
    bob.save()
    assert run(delivery) == TaskStatus.COMPLETED
    assert smtp.recipients == ["小林@example.org"]
    [to] = smtp.received[0]["To"].addresses  # read as bytes that are no ASCII
    assert to.addr_spec.encode("ascii", "surrogateescape").decode() == "小林@example.org"


@pytest.mark.parametrize("address", ["nobody", "@example.org", "bob@", "b ob@x.org", "bob@x..org"])
def test_what_is_no_address_ends_it(smtp, delivery, run, bob, address):
    bob.email = address
    bob.save()
    assert run(delivery) == TaskStatus.FAILED
    assert address in delivery.reason
    assert smtp.attempts == []


# Time


HELLO = [b"220 hello\r\n", b"250 hello\r\n"]


@pytest.mark.parametrize("script", [[], HELLO, [*HELLO, b"250 ok\r\n", b"250 ok\r\n"]])
def test_a_server_that_falls_silent_is_not_waited_for(mail_through, delivery, run, script):
    server = mail_through(BadServer(script, None), EMAIL_TIMEOUT=0.2)
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "timed out")
    server.stop()


@pytest.mark.parametrize("script", [[], HELLO, [*HELLO, b"250 ok\r\n", b"250 ok\r\n"]])
def test_a_server_that_trickles_is_not_waited_for(mail_through, delivery, run, settings, script):
    """Each byte comes in time; it is the whole call that ends."""
    settings.TEAMDESK_LEASE_SECONDS = 1
    server = mail_through(BadServer(script, b"2" * 100_000), EMAIL_TIMEOUT=20)
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "the whole call is bounded")
    server.stop()


@pytest.mark.parametrize("encryption", ["starttls", "from the start"])
def test_a_trickle_below_tls_is_not_waited_for(mail_through, delivery, run, settings, encryption):
    settings.TEAMDESK_LEASE_SECONDS = 1
    script = [b"220 hello\r\n", b"250-hello\r\n250 STARTTLS\r\n", b"220 go on\r\n"]
    record = b"\x16\x03\x03\x3f\xff" + b"2" * 0x3FFF  # the beginning of a handshake
    server = BadServer(script if encryption == "starttls" else [], record)
    use = {"EMAIL_USE_TLS": True} if encryption == "starttls" else {"EMAIL_USE_SSL": True}
    mail_through(server, EMAIL_TIMEOUT=20, **use)
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery)
    server.stop()


@pytest.mark.parametrize("beginning", [b"2", b"250", b"250 2.0.0 Ta"])
def test_half_a_yes_is_none(mail_through, delivery, run, beginning):
    """The connection ends in the middle of the answer."""
    script = [*HELLO, b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n", beginning]
    server = mail_through(BadServer(script, b""))
    assert run(delivery) == TaskStatus.WAITING
    assert_waits(delivery, "onnection unexpectedly closed")
    server.stop()


def test_a_good_bye_that_is_not_answered_changes_nothing(mail_through, delivery, run):
    script = [
        *HELLO, b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n", b"250 taken\r\n"
    ]  # fmt: skip
    server = mail_through(BadServer(script, None), EMAIL_TIMEOUT=0.2)
    assert run(delivery) == TaskStatus.COMPLETED
    assert (delivery.status, delivery.answer) == ("sent", "250 taken")
    server.stop()
