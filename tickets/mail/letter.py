"""A delivery as the mail it becomes: text and HTML, in the recipient's language and zone."""

from email import policy
from email.message import EmailMessage
from email.utils import format_datetime

from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation

from tickets import sentences
from tickets.mail import addresses
from tickets.models import MailDelivery
from tickets.models.user import language_of

# Servers that cannot pass on 8 bits are still met; addresses in UTF-8 need more, and ask for it.
_POLICY = policy.SMTP.clone(cte_type="7bit")
SUBJECT_LIMIT = 200


class Letter(EmailMultiAlternatives):
    """Made with the standard library's newer e-mail classes: they refuse a line break in a header
    and can carry addresses in UTF-8.

    Raises PermanentFailure if the recipient's address is none.
    """

    def __init__(self, delivery: MailDelivery):
        recipient = delivery.recipient
        self.sender = addresses.sender()
        self.recipient = addresses.parsed(recipient.email, recipient.display_name)
        with translation.override(language_of(recipient)), timezone.override(recipient.zone):
            page = _page(delivery)
            subject = addresses.one_line(_subject(delivery, page["sentence"]))
            headers = _headers(delivery, page)
            self.language = page["language"]
            text = render_to_string("mail/message.txt", page)
            html = render_to_string("mail/message.html", page)
        super().__init__(
            subject[:SUBJECT_LIMIT],
            text.strip() + "\n",
            self.sender.addr_spec,
            [self.recipient.addr_spec],
            headers=headers,
        )
        self.attach_alternative(html, "text/html")

    def message(self) -> EmailMessage:
        message = EmailMessage(_POLICY)
        message["From"] = self.sender
        message["To"] = self.recipient
        message["Subject"] = self.subject
        for name, value in self.extra_headers.items():
            message[name] = value
        message.set_content(self.body)
        message.add_alternative(self.alternatives[0].content, subtype="html")
        # Last: what is named Content-… before would be the first part's.
        message["Content-Language"] = self.language
        return message


def _page(delivery: MailDelivery) -> dict:
    ticket = delivery.ticket
    path = reverse("ticket_detail", args=[ticket.pk]) if ticket else delivery.url
    return {
        "delivery": delivery,
        "ticket": ticket,
        "language": translation.get_language(),
        "zone": timezone.get_current_timezone_name(),
        "quoted": "\n".join(f"> {line}" for line in delivery.excerpt.splitlines()),
        "sentence": sentences.of_notification(delivery),
        "because": sentences.why_mailed(delivery),
        "url": addresses.absolute(path),
        "preferences_url": addresses.absolute(reverse("profile") + "#mail"),
    }


def _subject(delivery: MailDelivery, sentence: str) -> str:
    # The same for all mails about a ticket: some programs group by subject as well as by headers.
    # What happened is the first line of the text, which they show beside it.
    return f"[#{delivery.ticket_id}] {delivery.text}" if delivery.ticket_id else sentence


def _headers(delivery: MailDelivery, page: dict) -> dict[str, str]:
    domain = addresses.domain()
    headers = {
        "Date": format_datetime(timezone.now()),
        "Message-ID": delivery.message_id,
        "Auto-Submitted": "auto-generated",  # RFC 3834: no vacation notice comes back
        "X-Auto-Response-Suppress": "All",  # the same for Exchange
        "List-Id": f"TeamDesk <teamdesk.{domain}>",  # for filters
        "List-Unsubscribe": f"<{page['preferences_url']}>",
        "X-TeamDesk-Event": delivery.kind,
    }
    if delivery.ticket:
        # The thread's first message never existed; programs group by its name all the same. The
        # second of its opening tells two installations at one domain apart.
        opened = int(delivery.ticket.created_at.timestamp())
        root = f"<ticket.{delivery.ticket_id}.{opened}@{domain}>"
        headers |= {"In-Reply-To": root, "References": root}
    return headers
