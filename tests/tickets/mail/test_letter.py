"""What a mail says, to whom, in whose language and time."""

import email
import email.policy
import re
from datetime import UTC, datetime

import pytest
from django.utils import translation

from tests.visible import VisibleTexts
from tickets.mail.letter import Letter
from tickets.models import MailDelivery, Notification, Ticket

pytestmark = pytest.mark.django_db


@pytest.fixture
def letter_to():
    """``letter_to(person, **event)``: what arrives, read as a mail program reads it."""

    def make(person, **event):
        event = {"kind": "assigned", "cause": "c:1", "text": "Printer"} | event
        Notification.objects.notify([person], **event)
        return arrived(MailDelivery.objects.get(recipient=person, cause=event["cause"]))

    return make


def arrived(delivery):
    raw = Letter(delivery).message().as_bytes()
    assert raw.isascii()
    assert max(len(line) for line in raw.splitlines()) <= 998
    return email.message_from_bytes(raw, policy=email.policy.default)


def text_of(message) -> str:
    return message.get_body(("plain",)).get_content().replace("\r\n", "\n")


def html_of(message) -> str:
    return message.get_body(("html",)).get_content()


def test_every_header(settings, assigned, bob, delivery):
    settings.DEFAULT_FROM_EMAIL = "TeamDesk <help@example.org>"
    settings.TEAMDESK_URL = "https://desk.example.org"
    message = arrived(delivery)
    root = f"<ticket.{assigned.pk}.{int(assigned.created_at.timestamp())}@example.org>"
    assert dict(message.items()) == {
        "From": "TeamDesk <help@example.org>",
        "To": "Bob Berg <bob@example.org>",
        "Subject": f"[#{assigned.pk}] Printer",
        "Date": message["Date"],
        "Message-ID": delivery.message_id,
        "In-Reply-To": root,
        "References": root,
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
        "List-Id": "TeamDesk <teamdesk.example.org>",
        "List-Unsubscribe": "<https://desk.example.org/accounts/profile/#mail>",
        "Content-Language": "en",
        "X-TeamDesk-Event": "assigned",
        "MIME-Version": "1.0",
        "Content-Type": message["Content-Type"],
    }
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert abs((message["Date"].datetime - datetime.now(UTC)).total_seconds()) < 3600


def test_all_mails_about_a_ticket_are_one_thread(assigned, bob, alice, letter_to):
    first = arrived(MailDelivery.objects.get())
    second = letter_to(bob, kind="reminder", cause="r", ticket=assigned)
    for_alice = letter_to(alice, kind="reminder", cause="r", ticket=assigned)
    other = Ticket.objects.open(by=alice, team=assigned.team, subject="Printer", assignee=bob)
    apart = arrived(MailDelivery.objects.get(ticket=other))
    assert len({each["References"] for each in (first, second, for_alice)}) == 1
    assert first["Subject"] == second["Subject"]
    assert apart["References"] != first["References"]
    assert len({each["Message-ID"] for each in (first, second, for_alice, apart)}) == 4


def test_an_export_belongs_to_no_thread(alice, letter_to):
    message = letter_to(alice, kind="export_ready", text="1200", url="/exports/7/")
    assert message["Subject"] == "Your export is ready: 1,200 rows"
    assert message["References"] is None and message["In-Reply-To"] is None
    assert "http://127.0.0.1:8000/exports/7/" in text_of(message)


@pytest.mark.parametrize(
    ("who", "kind", "reason"),
    [
        ("bob", "reminder", "because you are the assignee of this ticket."),
        ("alice", "reminder", "because you opened this ticket."),
        ("vera", "reminder", "because you are a member of this ticket's team."),
        ("alice", "export_ready", "because you asked for this export."),
    ],
)
def test_it_says_why(request, assigned, letter_to, who, kind, reason):
    ticket = assigned if kind == "reminder" else None
    message = letter_to(request.getfixturevalue(who), kind=kind, ticket=ticket)
    assert f"You get this mail {reason}" in text_of(message)
    assert f"You get this mail {reason}" in " ".join(VisibleTexts(html_of(message)).texts)


def test_links_lead_to_where_people_reach_us(settings, assigned, delivery):
    settings.TEAMDESK_URL = "https://desk.example.org"
    message = arrived(delivery)
    links = set(re.findall(r'href="([^"]*)"', html_of(message)))
    assert links == {
        f"https://desk.example.org/tickets/{assigned.pk}/",
        "https://desk.example.org/accounts/profile/#mail",
    }
    for link in links:
        assert link in text_of(message)
    assert not re.search(r"<(img|script|link|iframe)|url\(", html_of(message))


def test_times_are_the_recipients(alice, bob, support):
    bob.time_zone = "Asia/Shanghai"
    bob.save()
    due = datetime(2031, 5, 31, 22, 30, tzinfo=UTC)
    Ticket.objects.open(by=alice, team=support, subject="Lift", assignee=bob, due_at=due)
    message = arrived(MailDelivery.objects.get())
    for body in (text_of(message), html_of(message)):
        assert "June 1, 2031, 6:30 a.m. (Asia/Shanghai)" in body


def test_the_language_is_the_recipients_whoever_acts(alice, bob, support):
    bob.language, alice.language = "zh-hans", "en"
    bob.save(), alice.save()
    with translation.override("en"):
        Ticket.objects.open(by=alice, team=support, subject="打印机着火了", assignee=bob)
        message = arrived(MailDelivery.objects.get())
        assert translation.get_language() == "en"
    assert message["Content-Language"] == "zh-hans"
    assert '<html lang="zh-hans">' in html_of(message)
    for body in (text_of(message), html_of(message)):
        assert "打印机着火了" in body
        assert "优先级" in body and "Priority" not in body


@pytest.mark.parametrize(
    "subject",
    [
        "打印机着火了" * 20,
        "Ärger 😀 mit dem Drucker — schon wieder " * 4,
        "مرحبا بالعالم",
        'quotes "and" <angles>, commas; (parens)',
    ],
)
def test_any_subject_arrives_as_it_is(alice, bob, support, subject):
    subject = subject.strip()[:190]
    ticket = Ticket.objects.open(by=alice, team=support, subject=subject, assignee=bob)
    message = arrived(MailDelivery.objects.get())
    assert message["Subject"] == f"[#{ticket.pk}] {subject}"[:200]
    assert subject in text_of(message)


def test_a_subject_that_looks_encoded_is_not_decoded(bob, assigned, letter_to):
    message = letter_to(bob, kind="reminder", ticket=assigned, text="=?utf-8?q?=0D=0ABcc: b?=")
    assert message["Subject"] == f"[#{assigned.pk}] = ?utf-8?q?=0D=0ABcc: b?="


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028"])
def test_no_header_can_be_brought_in(bob, assigned, letter_to, newline):
    bob.first_name = f"B{newline}Bcc: b@evil.example"
    bob.save()
    evil = f"Hello{newline}Bcc: victim@example.com{newline}{newline}Body"
    message = letter_to(bob, kind="reminder", ticket=assigned, text=evil)
    assert message["Bcc"] is None
    assert message["Subject"].startswith(f"[#{assigned.pk}] Hello")
    assert [each.addr_spec for each in message["To"].addresses] == ["bob@example.org"]


def test_html_is_escaped(alice, bob, support, letter_to):
    support.name = "<b>Support</b>"
    support.save()
    ticket = Ticket.objects.open(
        by=alice, team=support, subject="<script>alert(1)</script> & more", assignee=bob
    )
    bob.mail_commented = True
    bob.save()
    ticket.comment(by=alice, body="<img src=x onerror=alert(1)>\nline two")
    message = arrived(MailDelivery.objects.get(kind="commented"))
    assert "<script" not in html_of(message) and "<img" not in html_of(message)
    assert "<b>Support" not in html_of(message)
    assert "<script>alert(1)</script> & more" in text_of(message)
    assert "> Alice Ames: <img src=x onerror=alert(1)>\n> line two" in text_of(message)


def test_names_and_domains_of_all_languages(bob):
    bob.first_name, bob.last_name, bob.email = "小", '林 "Lin", (x)', "lin@bücher.example"
    bob.save()
    Notification.objects.notify([bob], kind="assigned", cause="c", text="x")
    message = arrived(MailDelivery.objects.get())
    [to] = message["To"].addresses
    assert (to.display_name, to.addr_spec) == ('小 林 "Lin", (x)', "lin@xn--bcher-kva.example")


def _luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("text", "ground"),
    [
        ("#18212e", "#ffffff"), ("#566273", "#ffffff"), ("#566273", "#f1f4f8"),
        ("#18212e", "#f3f6fa"), ("#ffffff", "#0b5cad"), ("#0b5cad", "#f1f4f8"),
        ("#e8ecf2", "#1c232d"), ("#aab4c2", "#1c232d"), ("#aab4c2", "#12161c"),
        ("#e8ecf2", "#252e3a"), ("#8ec1f7", "#12161c"),
    ],
)  # fmt: skip
def test_what_is_written_can_be_read(assigned, delivery, text, ground):
    """4.5 : 1, as WCAG asks for, of every pair of colours there is."""
    html = html_of(arrived(delivery))
    assert text in html
    assert ground in html or ground == "#f3f6fa"  # of a quotation
    light, dark = sorted((_luminance(text), _luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5
