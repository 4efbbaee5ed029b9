"""Exporting tickets that were chosen one by one in the list."""

import pytest

from exports.models import Export
from tests.exports.conftest import records_of

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/new/"


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def tickets(ticket):
    return [ticket(subject) for subject in ("b", "a", "c")]


def test_the_page_says_how_many_were_chosen(browser, tickets):
    page = browser.get(URL, {"selected": "1", "id": [tickets[0].pk, tickets[1].pk]})
    text = page.content.decode()
    assert "Tickets: 2 chosen tickets" in text
    assert "Export 2 tickets" in text
    assert f'name="id" value="{tickets[0].pk},{tickets[1].pk}"' in text


def test_the_file_holds_those_tickets_in_the_lists_order(browser, tickets, run):
    ids = [tickets[0].pk, tickets[1].pk]
    browser.post(URL, {"id": ",".join(map(str, ids)), "sort": "subject", "columns": ["subject"]})
    export = Export.objects.get()
    assert export.filters_shown == [["Tickets", "2 chosen tickets"]]
    assert [record["subject"] for record in records_of(run(export))] == ["a", "b"]


def test_programs_send_a_list_of_numbers(browser, tickets):
    body = {"id": [tickets[2].pk, tickets[0].pk]}
    headers = {"accept": "application/json"}
    answer = browser.post(URL, body, content_type="application/json", headers=headers)
    assert answer.status_code == 202
    assert Export.objects.get().filters == {"id": [str(tickets[2].pk), str(tickets[0].pk)]}
    body = {"id": ["first"]}
    answer = browser.post(URL, body, content_type="application/json", headers=headers)
    assert answer.status_code == 400
    assert "“first” is not the number of a ticket." in answer.json()["error"]


def test_a_chosen_ticket_that_one_may_not_see_is_not_in_the_file(
    browser, tickets, ticket, billing, charlie, run
):
    theirs = ticket("theirs", team=billing, creator=charlie)
    page = browser.get(URL, {"id": [tickets[0].pk, theirs.pk]})
    assert "Export 1 ticket" in page.content.decode()
    browser.post(URL, {"id": [tickets[0].pk, theirs.pk], "columns": ["subject"]})
    assert records_of(run(Export.objects.get())) == [{"subject": "b"}]


def test_a_button_for_chosen_tickets_without_any_exports_nothing(browser, tickets):
    page = browser.get(URL, {"selected": "1", "sort": "subject"})
    assert "Choose at least one ticket in the list." in page.content.decode()
    assert "form-foot" not in page.content.decode()
    answer = browser.post(URL, {"selected": "1"}, headers={"accept": "application/json"})
    assert answer.status_code == 400
    assert not Export.objects.exists()


def test_a_thousand_chosen_tickets_can_be_exported_again(browser, alice, tickets, run):
    """All of them are one field of the form: a browser's form has at most a thousand fields."""
    ids = [tickets[0].pk, *range(10**9, 10**9 + 999)]
    first = run(Export.objects.request(alice, {"id": ids}, ["id"]))
    form = {}
    for name, value in first.choices():
        form.setdefault(name, []).append(value)
    assert browser.post(URL, form).status_code == 302
    second = Export.objects.exclude(pk=first.pk).get()
    assert second.filters == first.filters
