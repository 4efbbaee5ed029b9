"""Parts of the file: what a download asks for that goes on where it broke off (RFC 9110, 14)."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from exports.models import Export
from tests.exports.conftest import content_of, file_url, reloaded, store

pytestmark = pytest.mark.django_db(transaction=True)

# Chunks differ in size: borders are at 10, 15, 16 and 44.
PIECES = (b"The quick ", b"brown", b" ", b"fox jumps over the lazy dog;", b"the end")
FILE = b"".join(PIECES)
SIZE = len(FILE)


@pytest.fixture
def export(stored):
    return stored(*PIECES)


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


def ask(browser, export, wanted, **headers):
    return browser.get(file_url(export), headers={"range": wanted} | headers)


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=0-", 0, SIZE - 1),
        (f"bytes=0-{SIZE - 1}", 0, SIZE - 1),
        (f"bytes=0-{SIZE}", 0, SIZE - 1),
        ("bytes=0-99999999999999999999", 0, SIZE - 1),
        (f"bytes={SIZE - 1}-", SIZE - 1, SIZE - 1),
        ("bytes=-1", SIZE - 1, SIZE - 1),
        (f"bytes=-{SIZE}", 0, SIZE - 1),
        (f"bytes=-{SIZE + 1}", 0, SIZE - 1),
        ("bytes=10-14", 10, 14),  # one chunk
        ("bytes=11-12", 11, 12),  # inside one
        ("bytes=9-10", 9, 10),  # across a border
        ("bytes=9-16", 9, 16),  # across two chunks, with ends of two more
        ("bytes=14-", 14, SIZE - 1),
        ("BYTES=007-0010", 7, 10),
        ("bytes=, 3-4 ,", 3, 4),  # a list may have empty elements
    ],
)
def test_it_sends_the_part_that_is_asked_for(browser, export, wanted, first, last):
    answer = ask(browser, export, wanted)
    assert answer.status_code == 206
    assert answer["Content-Range"] == f"bytes {first}-{last}/{SIZE}"
    assert int(answer["Content-Length"]) == last - first + 1
    assert answer.getvalue() == FILE[first : last + 1]


def test_a_part_says_of_which_file_it_is(browser, export):
    part, whole = ask(browser, export, "bytes=1-2"), browser.get(file_url(export))
    for name in ("ETag", "Last-Modified", "Content-Type", "Content-Disposition", "Cache-Control"):
        assert part[name] == whole[name]
    assert part["Vary"] == whole["Vary"]
    assert part["Accept-Ranges"] == whole["Accept-Ranges"] == "bytes"
    assert not whole.has_header("Content-Range")


@pytest.mark.parametrize("wanted", [f"bytes={SIZE}-", f"bytes={SIZE}-{SIZE}", "bytes=-0"])
def test_it_says_how_long_the_file_is_when_there_is_no_such_part(browser, export, wanted):
    answer = ask(browser, export, wanted)
    assert answer.status_code == 416
    assert answer["Content-Range"] == f"bytes */{SIZE}"
    assert "ends before" in answer.content.decode()
    assert answer["Content-Type"].startswith("text/html")


def test_it_says_so_to_programs_in_json(browser, export):
    answer = ask(browser, export, f"bytes={SIZE}-", accept="application/json")
    assert (answer.status_code, set(answer.json())) == (416, {"error"})
    assert answer["Content-Range"] == f"bytes */{SIZE}"


@pytest.mark.parametrize(
    "wanted",
    [
        *("", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=2-1", "bytes=-1-2"),
        *("bytes=1-2-3", "bytes 1-2", "1-2", "bytes=١-٢", "bytes=+1-2", "bytes=0x1-0x2"),
        *("lines=1-2", "items=0-0", f"bytes={'9' * 5000}-"),
    ],
)
def test_it_ignores_what_is_malformed_or_of_another_unit(browser, export, wanted):
    answer = ask(browser, export, wanted)
    assert answer.status_code == 200
    assert not answer.has_header("Content-Range")
    assert answer.getvalue() == FILE


@pytest.mark.parametrize("wanted", ["bytes=0-1,4-5", "bytes=0-0,-1", f"bytes=0-1,{SIZE}-"])
def test_it_sends_the_whole_file_for_several_parts(browser, export, wanted):
    answer = ask(browser, export, wanted)
    assert answer.status_code == 200
    assert answer.getvalue() == FILE


def test_parts_one_after_the_other_are_the_file(browser, export):
    got = b""
    while len(got) < SIZE:
        got += ask(browser, export, f"bytes={len(got)}-{len(got) + 6}").getvalue()
    assert got == FILE
    assert ask(browser, export, f"bytes={len(got)}-").status_code == 416


def test_head_answers_as_for_the_whole_file_and_reads_nothing(browser, export):
    whole = browser.get(file_url(export))
    export.chunks.all().delete()
    answer = browser.head(file_url(export), headers={"range": "bytes=1-2"})
    assert answer.status_code == 200
    assert answer.getvalue() == b""
    assert dict(answer.items()).keys() == dict(whole.items()).keys()
    for name in set(dict(whole.items())) - {"X-Request-ID"}:
        assert answer[name] == whole[name]


def test_an_empty_file_has_no_parts(browser, stored):
    export = stored()
    assert browser.get(file_url(export)).getvalue() == b""
    answer = ask(browser, export, "bytes=-5")
    assert (answer.status_code, answer.getvalue()) == (200, b"")
    assert ask(browser, export, "bytes=0-")["Content-Range"] == "bytes */0"


pieces = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8)
positions = st.none() | st.integers(0, 400)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pieces=pieces, first=positions, last=positions)
@example(pieces=[b"a", b"b"], first=1, last=1)
@example(pieces=[b"a" * 40] * 8, first=None, last=200)
def test_any_part_is_a_slice_of_the_file(browser, export, pieces, first, last):
    """Against Python's own slices, whatever the chunks."""
    content = b"".join(pieces)
    export.chunks.all().delete()
    store(export, export.execution_id, pieces)
    Export.objects.filter(pk=export.pk).update(size=len(content))
    assert content_of(reloaded(export)) == content

    shown = f"{'' if first is None else first}-{'' if last is None else last}"
    answer = ask(browser, export, f"bytes={shown}")
    if first is None and last is None:
        expected, status = content, 200
    elif first is None:
        expected, status = content[-last:] if last else b"", 206 if last else 416
    elif last is not None and last < first:
        expected, status = content, 200
    else:
        expected = content[first : None if last is None else last + 1]
        status = 206 if expected else 416
    assert answer.status_code == status
    if status != 416:
        assert answer.getvalue() == expected
        assert int(answer["Content-Length"]) == len(expected)
    if status == 206:
        begin = len(content) - len(expected) if first is None else first
        end = begin + len(expected) - 1
        assert answer["Content-Range"] == f"bytes {begin}-{end}/{len(content)}"
