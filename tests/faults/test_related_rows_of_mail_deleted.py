"""The ticket, the team or the reader of a mail goes while it waits, or while it is being sent."""

import pytest
from django.core import mail

from tasks.models import BackgroundTask, TaskStatus
from tests.faults.test_related_rows_deleted import to_its_end  # noqa: F401  a fixture
from tickets.mail.posting import Posting
from tickets.models import MailDelivery, Team, Ticket, User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task(alice, bob, support):
    """bob is told by mail that a ticket is his."""
    Ticket.objects.open(by=alice, team=support, subject="Lift", assignee=bob)
    return BackgroundTask.objects.get(kind="MAIL")


GOES = {
    "ticket": lambda: Ticket.objects.all().delete(),
    "team": lambda: (Ticket.objects.all().delete(), Team.objects.all().delete()),
    "reader": lambda: User.objects.filter(username="bob").delete(),
    "reader's account": lambda: User.objects.filter(username="bob").update(is_active=False),
}
MOMENTS = {  # the step of the sending before which it goes
    "as the delivery was just read": (MailDelivery, "reason_to_skip"),
    "before the right to send": (MailDelivery, "begin_sending"),
    "on its way": (Posting, "send"),
    "before the server's yes is written down": (MailDelivery, "record_sent"),
}
UNSENT = {
    ("ticket", "as the delivery was just read"),
    ("team", "as the delivery was just read"),
    ("reader", "as the delivery was just read"),
    ("reader", "before the right to send"),  # the delivery went with bob
}


@pytest.fixture
def goes(monkeypatch):
    """``goes(what, moment)``: makes it happen once, just before that step of the sending."""

    def arrange(what, moment):
        place, name = MOMENTS[moment]
        original, done = getattr(place, name), []

        def step(self, *args, **options):
            if not done:
                done.append(what)
                GOES[what]()
            return original(self, *args, **options)

        monkeypatch.setattr(place, name, step)
        return done

    return arrange


def assert_the_row_stayed(after, what):
    assert (after.status, after.attempt) == (TaskStatus.COMPLETED, 1)
    assert (after.ticket_id is None) == (what in ("ticket", "team"))
    assert (after.team_id is None) == (what == "team")
    assert (after.owner_id is None) == (what == "reader")


@pytest.mark.parametrize("what", GOES)
def test_while_it_waits_nobody_is_told(task, to_its_end, what):  # noqa: F811
    GOES[what]()
    assert_the_row_stayed(to_its_end(task), what)
    assert mail.outbox == []


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("what", GOES)
def test_while_it_is_sent_it_leaves_at_most_once(task, goes, to_its_end, what, moment):  # noqa: F811
    done = goes(what, moment)
    assert_the_row_stayed(to_its_end(task), what)
    assert done == [what]
    assert len(mail.outbox) == ((what, moment) not in UNSENT)
