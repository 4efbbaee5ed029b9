"""/exports/new/: what would be exported, and asking for it."""

import json
import uuid

import pytest
from django.test import Client

from exports import columns
from exports.models import Export, RowKind
from tasks.models import BackgroundTask
from tests.exports.conftest import records_of, reloaded

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/new/"
JSON = {"accept": "application/json"}


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def test_it_shows_what_would_be_exported(browser, alice, ticket):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    ticket("Fire"), ticket("Fire again"), ticket("Water")
    page = browser.get(URL, {"q": "fire", "status": ["open", "pending"]})
    assert page.status_code == 200
    text = page.content.decode()
    assert "Search: fire" in text
    assert "Status: open, pending" in text
    assert "Export 2 tickets" in text
    assert 'value="Asia/Shanghai"' in text
    assert text.count('type="checkbox"') == len(columns.COLUMNS_OF[RowKind.TICKETS])


def test_it_exports_what_the_page_showed(browser, ticket, run):
    """The page's own hidden fields and ticked boxes are what the browser sends."""
    fire = ticket("Fire", status="pending")
    ticket("Fire", status="closed"), ticket("Water", status="pending")
    page = browser.get(URL, {"q": "fire", "status": ["open", "pending"]})
    sent = dict(page.context["pairs"])
    form = {
        "q": sent["q"],
        "status": [value for name, value in page.context["pairs"] if name == "status"],
        "key": page.context["form"]["key"].value(),
        "columns": ["", "id", "subject"],
    }
    answer = browser.post(URL, form)
    export = Export.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/exports/{export.pk}/")
    assert export.columns == ["id", "subject"]
    assert records_of(run(export)) == [{"id": str(fire.pk), "subject": "Fire"}]


def test_it_answers_a_program_with_202(browser):
    answer = browser.post(f"{URL}?status=open", {"q": "fire"}, headers=JSON)
    export = Export.objects.get()
    assert answer.status_code == 202
    assert answer.json() == {
        "id": export.pk,
        "status": "WAITING",
        "url": f"/exports/{export.pk}/",
    }
    assert export.pk == BackgroundTask.objects.get().pk
    assert export.filters == {"q": "fire", "status": ["open"]}
    assert export.columns == columns.chosen(None)


def test_it_takes_the_bodys_value_where_both_name_one(browser):
    browser.post(f"{URL}?status=open&q=a", {"status": ["closed", "pending"]}, headers=JSON)
    assert Export.objects.get().filters == {"q": "a", "status": ["closed", "pending"]}


def test_it_takes_a_json_body(browser):
    body = {"status": ["open", "pending"], "q": "fire", "columns": ["id"], "tags": None}
    answer = browser.post(URL, json.dumps(body), content_type="application/json", headers=JSON)
    assert answer.status_code == 202
    export = Export.objects.get()
    assert export.filters == {"q": "fire", "status": ["open", "pending"]}
    assert export.columns == ["id"]


@pytest.mark.parametrize(
    "body",
    ["{", "[]", '"open"', '{"q": {"a": 1}}', '{"status": [[]]}', "\xff", "[" * 99_999, "9" * 5_000],
)
def test_it_refuses_a_json_body_that_is_no_object_of_texts(browser, body):
    answer = browser.post(URL, body, content_type="application/json", headers=JSON)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert not BackgroundTask.objects.exists()


@pytest.mark.parametrize("name", ["status", "columns", "q", "key"])
def test_it_survives_half_a_character(browser, name):
    body = '{"%s": "\\ud800\\u0000"}' % name  # noqa: UP031  braces
    answer = browser.post(URL, body, content_type="application/json")
    assert answer.status_code in (422, 302)


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ({"status": "nonsense"}, "nonsense"),
        ({"created_after": "yesterday"}, "yesterday"),
        ({"columns": "salary"}, "salary"),
        ({"columns": ""}, "at least one column"),
        ({"key": "no uuid"}, "key"),
        ({"row_kind": "people"}, "tickets"),
        ({"format": "pdf"}, "xlsx"),
        ({"delimiter": "|"}, "|"),
        ({"time_zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"announced_rows": "-1"}, "announced_rows"),
    ],
)
def test_it_says_what_is_wrong_and_stores_nothing(browser, sent, complaint):
    answer = browser.post(URL, sent, headers=JSON)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert complaint in answer.json()["error"]
    page = browser.post(URL, sent)
    assert page.status_code == 422
    assert complaint in page.content.decode()
    assert not BackgroundTask.objects.exists()


def test_it_keeps_the_choices_when_no_column_is_ticked(browser, ticket):
    answer = browser.post(URL, {"q": "fire", "columns": ""})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert '<input type="hidden" name="q" value="fire">' in page
    assert 'aria-describedby="columns-error"' in page


def test_it_shows_filters_that_cannot_be_read_without_a_button(browser):
    page = browser.get(URL, {"status": "nonsense"})
    assert page.status_code == 200
    assert "nonsense" in page.content.decode()
    assert "form-foot" not in page.content.decode()


def test_it_makes_one_export_of_a_double_click(browser):
    key = str(uuid.uuid4())
    first = browser.post(URL, {"key": key})
    second = browser.post(URL, {"key": key})
    assert first["Location"] == second["Location"]
    assert Export.objects.count() == BackgroundTask.objects.count() == 1


def test_it_takes_other_choices_on_the_same_page_for_another_export(browser):
    """The Back button shows the page again with the key it was sent with."""
    key = str(uuid.uuid4())
    browser.post(URL, {"columns": ["id"], "key": key})
    browser.post(URL, {"columns": ["subject"], "key": key})
    browser.post(URL, {"columns": ["subject"], "status": "open", "key": key})
    asked = Export.objects.order_by("pk").values_list("columns", "filters")
    assert list(asked) == [(["id"], {}), (["subject"], {}), (["subject"], {"status": ["open"]})]


def test_it_makes_two_exports_of_two_requests(browser):
    browser.post(URL), browser.post(URL)
    assert Export.objects.count() == 2


def test_it_makes_no_export_of_another_persons_key(browser, client, alice, bob):
    key = str(uuid.uuid4())
    browser.post(URL, {"key": key})
    client.force_login(bob)
    client.post(URL, {"key": key})
    assert {export.requester for export in Export.objects.all()} == {alice, bob}


def test_it_runs_an_export_again_with_the_same_choices(browser, alice, run):
    first = Export.objects.request(
        alice,
        {"status": ["open", "closed"], "q": "fire"},
        ["id", "subject"],
        row_kind="history",
        file_format="csv.gz",
        delimiter="\t",
        time_zone="Asia/Tokyo",
    )
    form = {}
    for name, value in first.choices():
        form.setdefault(name, []).append(value)
    browser.post(URL, form)
    second = Export.objects.exclude(pk=first.pk).get()
    for name in ("filters", "columns", "row_kind", "file_format", "delimiter", "time_zone"):
        assert getattr(second, name) == getattr(first, name), name


@pytest.mark.parametrize("address", ["new", "1", "1/download", "1/retry", "1/cancel"])
def test_a_program_is_refused_in_json(browser, address):
    for answer in (
        browser.put(f"/exports/{address}/", headers=JSON),
        _without_token(browser).post(f"/exports/{address}/", headers=JSON),
    ):
        assert answer.status_code in {403, 405}
        assert set(answer.json()) == {"error"}
        assert answer.status_code == 403 or answer.headers["Allow"]


def _without_token(browser):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = browser.cookies
    return strict


def test_it_asks_nobody_unknown(client, db):
    page = client.get(URL)
    assert page.status_code == 302
    assert page["Location"].startswith("/accounts/login/?next=/exports/new/")
    answer = client.post(URL, headers=JSON)
    assert answer.status_code == 401
    assert set(answer.json()) == {"error"}
    assert not BackgroundTask.objects.exists()


def test_it_stores_the_language_and_zone_of_who_asks(browser, alice):
    alice.time_zone = "Europe/Berlin"
    alice.save()
    browser.post(URL, headers={"accept-language": "zh-hans"})
    export = reloaded(Export.objects.get())
    assert (export.language, export.time_zone) == ("zh-hans", "Europe/Berlin")


def test_people_read_the_filters_name_and_programs_the_parameters(browser):
    wrong = {"created_after": "yesterday"}
    assert "Created from: “yesterday”" in browser.get(URL, wrong).content.decode()
    error = browser.post(URL, wrong, headers=JSON).json()["error"]
    assert error.startswith("created_after: “yesterday”")
