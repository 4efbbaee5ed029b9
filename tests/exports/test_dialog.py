"""The page of a new export: what it offers, what it starts with, what it keeps."""

import re
import uuid

import pytest

from exports.columns import COLUMNS_OF, chosen
from exports.forms import usual_delimiter
from exports.models import Export, RememberedChoices
from tests.exports.conftest import records_of, reloaded
from tickets.columns import COLUMNS, USUAL_FIELDS

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/new/"
JSON = {"accept": "application/json"}
HTMX = {"hx-request": "true", "hx-target": "dialog"}


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def tickets(alice, ticket):
    """Two tickets; one has two comments and with them a history."""
    quiet, busy = ticket("Fire"), ticket("Fire again")
    busy.comment(by=alice, body="On it.")
    busy.comment(by=alice, body="Done.")
    return quiet, busy


def start(browser, **parameters) -> dict:
    """What the page's fields say when it opens."""
    form = browser.get(URL, parameters).context["form"]
    return {name: form[name].value() for name in form.fields}


def sent_by(page, **changes) -> dict:
    """What a browser sends from the page's form, with ``changes`` by the person."""
    form = page.context["form"]
    fields = {
        name: form[name].value() for name in ("row_kind", "format", "delimiter", "time_zone", "key")
    }
    fields |= {"columns": ["", *form["columns"].value()], "shown_kind": form.offered_kind}
    fields["announced_rows"] = page.context["rows"]
    for name, value in page.context["pairs"]:
        fields.setdefault(name, []).append(value)
    return fields | changes


# What it starts with


def test_it_starts_with_the_columns_of_the_list_in_the_persons_zone(browser, alice):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    offered = start(browser)
    assert set(offered["columns"]) == set(USUAL_FIELDS)
    assert (offered["row_kind"], offered["format"]) == ("tickets", "csv")
    assert (offered["delimiter"], offered["time_zone"]) == (",", "Asia/Shanghai")
    assert uuid.UUID(str(offered["key"]))


def test_every_column_that_the_list_shows_can_be_exported():
    assert {column.field for column in COLUMNS} <= set(COLUMNS_OF["tickets"])


@pytest.mark.parametrize("kind", ["conversation", "history"])
def test_it_starts_with_the_usual_columns_of_other_rows(browser, kind):
    assert start(browser, row_kind=kind)["columns"] == chosen(None, kind)


def test_it_starts_with_what_its_address_asks_for(browser):
    asked = {"row_kind": "history", "format": "xlsx", "time_zone": "Asia/Tokyo"}
    assert start(browser, **asked).items() >= asked.items()
    assert start(browser, format="csv", delimiter=";")["delimiter"] == ";"
    assert start(browser, columns=["subject"])["columns"] == ["subject"]


@pytest.mark.parametrize(
    "asked",
    [
        {"row_kind": "people"},
        {"format": "pdf"},
        {"delimiter": "|"},
        {"time_zone": "Mars/Olympus"},
        {"columns": ["salary"]},
    ],
)
def test_it_opens_whatever_its_address_says(browser, asked):
    page = browser.get(URL, asked)
    assert page.status_code == 200
    (name,) = asked
    assert page.context["form"][name].value() == start(browser)[name]


@pytest.mark.parametrize(
    ("language", "languages", "delimiter"),
    [
        ("", "de-AT,de;q=0.9,en;q=0.8", ";"),
        ("", "en-US,en;q=0.9,de;q=0.8", ","),
        ("", "fr", ";"),
        ("", "", ","),
        ("", "*", ","),
        ("", "qq-nonsense;;;", ","),
        ("zh-hans", "de", ","),
        ("en", "de", ","),
    ],
)
def test_it_suggests_semicolons_where_decimals_have_a_comma(language, languages, delimiter):
    assert usual_delimiter(language, languages) == delimiter


def test_it_asks_the_browser_whose_language_decides_the_delimiter(browser):
    page = browser.get(URL, headers={"accept-language": "de-AT,de;q=0.9"})
    assert page.context["form"]["delimiter"].value() == ";"


# What it keeps


def test_it_remembers_what_was_chosen_per_kind_of_row(browser, tickets):
    page = browser.get(URL)
    changes = {"columns": ["", "subject", "id"], "format": "csv.gz", "delimiter": ";"}
    browser.post(URL, sent_by(page, **changes, time_zone="Asia/Tokyo"))
    page = browser.get(URL, {"row_kind": "history"})
    first_of_history = chosen(None, "history")[0]
    browser.post(URL, sent_by(page, columns=["", first_of_history]))
    assert (
        start(browser).items()
        >= {
            "columns": ["id", "subject"],
            "format": "csv.gz",
            "delimiter": ";",
            "time_zone": "Asia/Tokyo",
        }.items()
    )
    assert start(browser, row_kind="history")["columns"] == [first_of_history]
    assert start(browser, row_kind="conversation")["columns"] == chosen(None, "conversation")


def test_it_remembers_for_each_person(browser, client, bob, tickets):
    browser.post(URL, sent_by(browser.get(URL), columns=["", "id"], format="jsonl"))
    client.force_login(bob)
    assert set(start(client)["columns"]) == set(USUAL_FIELDS)
    assert start(client)["format"] == "csv"


def test_it_keeps_the_delimiter_when_a_format_without_one_is_chosen(browser):
    browser.post(URL, sent_by(browser.get(URL), delimiter=";"))
    browser.post(URL, sent_by(browser.get(URL), format="xlsx", delimiter=","))
    assert start(browser)["delimiter"] == ";"


def test_the_persons_own_zone_follows_their_settings(browser, alice):
    browser.post(URL, sent_by(browser.get(URL)))
    alice.time_zone = "Asia/Tokyo"
    alice.save()
    assert start(browser)["time_zone"] == "Asia/Tokyo"


def test_it_forgets_columns_that_exist_no_more(browser, alice):
    RememberedChoices.objects.create(person=alice, columns={"tickets": ["salary", "id"]})
    assert start(browser)["columns"] == ["id"]
    RememberedChoices.objects.update(columns={"tickets": ["salary"]})
    assert set(start(browser)["columns"]) == set(USUAL_FIELDS)


def test_programs_and_old_exports_that_run_again_change_nothing_of_it(browser, alice):
    browser.post(URL, {"columns": "id", "format": "xlsx"}, headers=JSON)
    again = {"row_kind": "tickets", "format": "xlsx", "delimiter": ",", "columns": ["id"]}
    browser.post(URL, again)
    assert Export.objects.count() == 2
    assert not RememberedChoices.objects.exists()


# What it asks for


def test_it_stores_all_that_was_chosen(browser, tickets):
    changes = {"row_kind": "tickets", "format": "csv.gz", "delimiter": ";"}
    answer = browser.post(URL, sent_by(browser.get(URL), **changes, time_zone="Asia/Tokyo"))
    export = reloaded(Export.objects.get())
    assert answer["Location"] == f"/exports/{export.pk}/"
    assert (export.row_kind, export.file_format, export.delimiter) == ("tickets", "csv.gz", ";")
    assert (export.time_zone, export.announced_rows) == ("Asia/Tokyo", 2)


def test_programs_send_the_same_names(browser, tickets):
    body = {
        "row_kind": "history",
        "format": "jsonl",
        "time_zone": "Asia/Tokyo",
        "columns": chosen(None, "history")[:1],
    }
    answer = browser.post(URL, body, content_type="application/json", headers=JSON)
    assert answer.status_code == 202
    export = Export.objects.get()
    assert (export.row_kind, export.file_format, export.time_zone) == (
        "history",
        "jsonl",
        "Asia/Tokyo",
    )
    assert export.columns == body["columns"]
    assert export.announced_rows is None  # nobody told it a number


def test_a_program_is_told_that_a_column_is_of_other_rows(browser):
    sent = {"row_kind": "history", "columns": "description"}
    answer = browser.post(URL, sent, headers=JSON)
    assert answer.status_code == 400
    assert "description" in answer.json()["error"]
    assert not Export.objects.exists()


@pytest.mark.parametrize("file_format", ["xlsx", "jsonl"])
def test_a_delimiter_means_nothing_to_a_format_without_one(browser, file_format):
    sent = {"format": file_format, "delimiter": "\t"}
    assert browser.post(URL, sent, headers=JSON).status_code == 202
    assert Export.objects.get().delimiter == ","


# How many rows, of which kind


def test_it_announces_the_rows_of_each_kind(browser, tickets):
    assert "Export 2 tickets" in browser.get(URL).content.decode()
    page = browser.get(URL, {"row_kind": "conversation"})
    assert page.context["rows"] == 3  # two comments, and the ticket without any
    assert "Export 3 rows" in page.content.decode()
    history = browser.get(URL, {"row_kind": "history"}).context["rows"]
    assert history == tickets[1].events.count() > 0


def test_it_fetches_itself_alone_for_another_kind_of_row(browser, tickets):
    asked = {"row_kind": "conversation", "format": "xlsx", "q": "again"}
    page = browser.get(URL, asked, headers=HTMX)
    text = page.content.decode()
    assert text.lstrip().startswith('<div id="dialog">')
    assert "<html" not in text
    assert '"say": "2 rows"' in page["HX-Trigger"]
    assert '<input type="hidden" name="q" value="again">' in text
    assert re.search(r'<option value="xlsx" selected>', text)


def test_without_a_script_another_kind_of_row_is_shown_before_it_is_exported(browser, tickets, run):
    first = browser.get(URL)
    second = browser.post(URL, sent_by(first, row_kind="conversation", format="xlsx"))
    assert second.status_code == 200
    assert not Export.objects.exists()
    assert "Export 3 rows" in second.content.decode()
    assert second.context["form"]["columns"].value() == chosen(None, "conversation")
    assert second.context["form"]["format"].value() == "xlsx"
    browser.post(URL, sent_by(second, format="csv"))
    export = Export.objects.get()
    assert (export.row_kind, export.announced_rows) == ("conversation", 3)
    assert len(records_of(run(export))) == 3


def test_it_offers_all_that_one_may_see_instead(browser, tickets):
    assert 'href="/exports/new/">Export all' in browser.get(URL, {"q": "again"}).content.decode()
    assert "Export all" not in browser.get(URL, {"sort": "id"}).content.decode()


def test_it_keeps_what_was_typed_when_something_is_wrong(browser, tickets):
    sent = sent_by(browser.get(URL), time_zone="Mars/Olympus", format="jsonl", columns=["", "id"])
    page = browser.post(URL, sent)
    text = page.content.decode()
    assert page.status_code == 422
    assert "“Mars/Olympus” is not a known time zone." in text
    assert re.search(r'<option value="jsonl" selected>', text)
    assert page.context["form"]["columns"].value() == ["", "id"]
    assert f'name="key" value="{sent["key"]}"' in text


def test_what_is_shown_after_an_old_exports_button_was_refused_is_one_click_too(browser):
    """That button sends no key."""
    page = browser.post(URL, {"row_kind": "tickets", "columns": [""]})
    assert page.status_code == 422
    assert uuid.UUID(re.search(r'name="key" value="([^"]+)"', page.content.decode()).group(1))
