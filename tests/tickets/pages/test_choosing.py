"""/tickets/: tickets chosen one by one, as the page is without a script."""

import re

import pytest

from tickets.models import Ticket

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client, bob):
    client.force_login(bob)

    def fetch(**parameters) -> str:
        return client.get("/tickets/", parameters).content.decode()

    return fetch


def form_of(page) -> str:
    return re.search(r'<form id="chosen-tickets".*?</form>', page, re.DOTALL).group()


def test_each_row_has_a_box_of_a_form_that_leads_to_the_export(page, make_ticket):
    for subject in ("Printer", "Scanner"):
        make_ticket(subject=subject)
    text = page()
    boxes = re.findall(
        r'name="id" value="(\d+)" form="chosen-tickets"[^>]* aria-label="([^"]+)"', text
    )
    assert boxes == [
        (str(ticket.pk), f"Choose #{ticket.pk}: {ticket.subject}")
        for ticket in Ticket.objects.order_by("-updated_at", "-pk")
    ]
    form = form_of(text)
    assert 'method="get" action="/exports/new/"' in form
    assert "Export selected" in form


def test_the_form_keeps_the_order_of_the_list(page, make_ticket):
    make_ticket(subject="Printer")
    assert '<input type="hidden" name="sort" value="subject">' in form_of(page(sort="subject"))
    assert 'name="sort"' not in form_of(page())


def test_an_empty_list_has_nothing_to_choose(page, make_ticket):
    make_ticket(subject="Printer")
    assert "chosen-tickets" not in page(q="scanner")


def test_chosen_tickets_are_a_filter_that_others_keep(page, make_ticket):
    first, second, other = (make_ticket(subject=subject) for subject in ("one", "two", "three"))
    text = page(id=[first.pk, second.pk])
    assert "Tickets: 2 chosen tickets" in text
    assert f"/tickets/{first.pk}/" in text and f"/tickets/{second.pk}/" in text
    assert f"/tickets/{other.pk}/" not in text
    filters = re.search(r'<form id="filters".*?</form>', text, re.DOTALL).group()
    assert f'<input type="hidden" name="id" value="{first.pk},{second.pk}">' in filters
