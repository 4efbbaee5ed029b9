"""Mails as a browser shows them, as most programs for mail do."""

from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone

from tickets.mail.letter import Letter
from tickets.models import MailDelivery, Notification, Ticket

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# The program around a mail has the landmarks of a page.
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


@pytest.fixture
def mails(alice, bob, support) -> dict[str, str]:
    """The HTML of one mail of each event."""
    bob.mail_commented = True
    bob.save()
    ticket = Ticket.objects.open(
        by=alice,
        team=support,
        subject="Printer " + "Averyveryverylongword" * 6,
        assignee=bob,
        due_at=timezone.now() + timedelta(days=1),
    )
    ticket.comment(by=alice, body="It burns.\n" + "x" * 300)
    told = Notification.objects.notify
    told([bob], kind="reminder", cause="r", ticket=ticket, text=ticket.subject)
    told([bob], kind="export_ready", cause="e", text="1200", url="/exports/7/")
    deliveries = MailDelivery.objects.filter(recipient=bob)
    return {each.kind: Letter(each).alternatives[0].content for each in deliveries}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_mails_break_no_rule_and_fit_a_small_phone(chromium, mails, theme):
    assert len(mails) == 4
    # Of our pages it knows nothing, their content policy least of all.
    context = chromium.new_context(viewport={"width": 360, "height": 700}, color_scheme=theme)
    page = context.new_page()
    broken, wide = [], []
    for kind, html in mails.items():
        page.set_content(html)
        broken += [
            (kind, each["id"]) for each in Axe().run(page, options=WCAG).response["violations"]
        ]
        wide += [kind] if page.evaluate("document.documentElement.scrollWidth") > 360 else []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    context.close()
    assert (broken, wide) == ([], [])
    assert ground == {"light": "rgb(241, 244, 248)", "dark": "rgb(18, 22, 28)"}[theme]
