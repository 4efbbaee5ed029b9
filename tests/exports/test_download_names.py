"""What a downloaded file is called, and how that is told to browsers (RFC 6266, RFC 8187)."""

import re
from datetime import timedelta
from urllib.parse import unquote

import pytest

from exports.download import attachment
from exports.models import Export
from tests.exports.conftest import file_url

pytestmark = pytest.mark.django_db(transaction=True)

LIVE = ["open", "pending", "on_hold"]


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def named(browser, stored):
    """``named(filters, …)``: what the file of such an export is called, without its day."""

    def name_of(filters=None, **choices):
        export = stored(b"file", filters=filters, **choices)
        day = export.task.finished_at.date().isoformat()
        name = shown_name(browser.get(file_url(export))["Content-Disposition"])
        assert name.count(day) == 1
        assert len(name.encode()) <= 255
        return name.replace(f"-{day}", "")

    return name_of


def shown_name(header: str) -> str:
    """As a browser reads it: the UTF-8 form wins."""
    found = re.fullmatch(
        r'attachment; filename="([^"\\%]*)"(?:; filename\*=UTF-8\'\'(\S+))?', header
    )
    assert found and header.isascii(), header
    return unquote(found[2], errors="strict") if found[2] else found[1]


def test_it_says_the_team_and_the_day(browser, stored):
    export = stored(b"file")
    day = export.task.finished_at.date().isoformat()
    header = browser.get(file_url(export))["Content-Disposition"]
    assert header == f'attachment; filename="tickets-Support-{day}.csv"'


def test_the_day_is_that_of_the_requesters_zone(browser, stored):
    export = stored(b"file", time_zone="Pacific/Kiritimati")
    made_at = export.task.finished_at + timedelta(hours=14)
    header = browser.get(file_url(export))["Content-Disposition"]
    assert header.endswith(f'-{made_at.date()}.csv"')


def test_it_says_no_team_when_there_are_several_or_none(browser, stored, support, billing):
    export = stored(b"file")
    billing.memberships.create(user=export.requester, role="viewer")
    for teams in ([], [support.pk, billing.pk]):
        Export.objects.filter(pk=export.pk).update(team_ids=teams)
        header = browser.get(file_url(export))["Content-Disposition"]
        assert re.search(r'"tickets-[0-9-]+\.csv"$', header)


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({"row_kind": "conversation"}, "conversations-Support.csv"),
        ({"row_kind": "history", "file_format": "jsonl"}, "history-Support.jsonl"),
        ({"file_format": "csv.gz"}, "tickets-Support.csv.gz"),
        ({"file_format": "xlsx"}, "tickets-Support.xlsx"),
    ],
)
def test_it_says_what_each_row_is_and_the_format(named, choices, expected):
    assert named(**choices) == expected


@pytest.mark.parametrize(
    ("filters", "view"),
    [
        ({}, ""),
        ({"sort": "due"}, ""),
        ({"status": LIVE}, "Open"),
        ({"assignee": "me", "status": LIVE, "sort": "id"}, "Mine"),
        ({"assignee": "none", "status": LIVE}, "Unassigned"),
        ({"overdue": "1"}, "Overdue"),
        ({"q": "printer on fire"}, "printer on fire"),
        ({"priority": ["high", "urgent"], "overdue": "1"}, "high, urgent-Overdue"),
        ({"assignee": "none", "tags": ["vip"]}, "Assignee nobody-vip"),
        ({"created_after": "2026-05-01"}, "Created from May 1, 2026"),
    ],
)
def test_it_says_what_was_selected(named, filters, view):
    assert named(filters) == f"tickets-Support{view and '-'}{view}.csv"


def test_it_says_due_today_as_it_was_meant(named, alice, time_machine):
    day = Export.objects.request(alice, {}, ["id"]).created_at.date().isoformat()
    filters = {"due_after": day, "due_before": day, "status": LIVE}
    assert named(filters) == "tickets-Support-Due today.csv"


def test_it_says_the_team_once(named, support):
    assert named({"team": [str(support.pk)]}) == "tickets-Support.csv"
    filters = {"team": [str(support.pk)], "assignee": "me", "status": LIVE}
    assert named(filters) == "tickets-Support-Mine.csv"


def test_it_speaks_the_requesters_language(named, alice):
    alice.language = "zh-hans"
    alice.save()
    assert named({"status": LIVE}).startswith("工单-Support-")


@pytest.mark.parametrize(
    ("team", "expected"),
    [
        ("支持团队", "支持团队"),
        ("Zoë’s & Søn (1+1)", "Zoë’s & Søn (1+1)"),
        ('支持/"A"\r\nX', "支持-A-X"),
        ("../../etc/passwd", "etc-passwd"),
        ('a\\b:c*d?e"f<g>h|i', "a-b-c-d-e-f-g-h-i"),
        ("🔥 hot 👩‍💻", "🔥 hot 👩‍💻"),
        ("100%", "100%"),
        ("gpj.\u202evsc\u200b", "gpj.-vsc"),
        ("  . ", ""),
        ("ทีม; filename=evil.exe", "ทีม; filename=evil.exe"),
    ],
)
def test_any_team_makes_a_name_that_can_be_saved(named, support, team, expected):
    support.name = team
    support.save()
    assert named() == f"tickets-{expected}{expected and '-'}".rstrip("-") + ".csv"


@pytest.mark.parametrize("sign", ["x", "支", "🔥"])
def test_a_view_of_many_words_is_cut(named, support, sign):
    """Names of 255 bytes are the most that file systems take; ``named`` looks at that too."""
    support.name = sign * 100
    support.save()
    name = named({"q": sign * 190, "tags": [sign * 50, sign * 49]})
    team, view = name.removeprefix("tickets-").removesuffix(".csv").split("-")
    assert re.fullmatch(f"{sign}+…", team) and re.fullmatch(f"{sign}+…", view)
    assert len(team.encode()) > 70 and len(view.encode()) > 90


def test_words_are_cut_whole(named):
    assert named({"q": "printer " * 20}).endswith("printer printer….csv")


def test_programs_without_utf_8_names_find_a_plain_one():
    header = attachment("工单-Zoë-支持-2026-12-01.csv.gz")
    assert header == (
        'attachment; filename="Zoe-2026-12-01.csv.gz"; '
        "filename*=UTF-8''%E5%B7%A5%E5%8D%95-Zo%C3%AB-%E6%94%AF%E6%8C%81-2026-12-01.csv.gz"
    )


def test_a_name_never_ends_its_header_early():
    assert shown_name(attachment('a"; filename="b\r\nSet-Cookie: c=d')) == (
        'a"; filename="b\r\nSet-Cookie: c=d'
    )
    assert "\n" not in attachment("a\r\nb") and "%0D%0A" in attachment("a\r\nb")
