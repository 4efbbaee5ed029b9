"""Is it still the same file? ETag, Last-Modified and the conditions on them (RFC 9110, 13)."""

import uuid
from datetime import timedelta

import pytest
from django.utils.http import http_date

from exports.models import Export
from tests.exports.conftest import file_url, reloaded, store

pytestmark = pytest.mark.django_db(transaction=True)

FILE = b"the first chunk, the second"
OTHER = '"0123-27"'


@pytest.fixture
def export(stored):
    return stored(FILE[:16], FILE[16:])


@pytest.fixture
def browser(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def ask(browser, export):
    """``ask(if_match=…)``: the file, under this condition."""
    return lambda **headers: browser.get(file_url(export), headers=headers)


@pytest.fixture
def etag(ask):
    return ask()["ETag"]


def modified(export, **later) -> str:
    return http_date((export.task.finished_at + timedelta(**later)).timestamp())


def is_whole(answer) -> bool:
    return answer.status_code == 200 and answer.getvalue() == FILE


def is_part(answer) -> bool:
    return answer.status_code == 206 and answer.getvalue() == FILE[5:]


def is_refused(answer) -> bool:
    return answer.status_code == 412 and FILE not in answer.content


def is_unchanged(answer) -> bool:
    return answer.status_code == 304 and answer.content == b""


def test_the_etag_is_strong_and_stays(ask, export):
    etag = ask()["ETag"]
    assert etag == f'"{export.execution_id.hex}-{len(FILE)}"'
    assert ask()["ETag"] == ask(range="bytes=3-4")["ETag"] == etag


def test_another_execution_has_another_etag(ask, export, etag):
    other = uuid.uuid4()
    store(export, other, [FILE])
    Export.objects.filter(pk=export.pk).update(execution_id=other)
    assert ask()["ETag"] != etag


def test_it_was_modified_when_it_was_completed(ask, export):
    assert ask()["Last-Modified"] == modified(export)


def test_it_may_be_kept_by_its_reader_alone_and_is_asked_for_each_time(ask):
    assert ask()["Cache-Control"] == "private, no-cache, no-transform"
    assert {"Accept", "Cookie", "HX-Request"} <= set(ask()["Vary"].split(", "))


def test_nothing_compresses_it_on_the_way(ask):
    answer = ask(accept_encoding="gzip, br, deflate")
    assert not answer.has_header("Content-Encoding")
    assert is_whole(answer)
    assert answer["X-Content-Type-Options"] == "nosniff"


# If-None-Match, If-Modified-Since


def test_it_is_not_sent_to_whom_has_it(ask, etag):
    for tags in (etag, f"W/{etag}", f"{OTHER}, {etag}", "*"):
        answer = ask(if_none_match=tags)
        assert is_unchanged(answer), tags
        assert answer["ETag"] == etag
        assert answer["Cache-Control"] == "private, no-cache, no-transform"
        assert "Accept" in answer["Vary"]
    assert is_whole(ask(if_none_match=OTHER))


def test_it_is_not_sent_to_whom_has_it_since(ask, export):
    assert is_unchanged(ask(if_modified_since=modified(export)))
    assert is_unchanged(ask(if_modified_since=modified(export, days=1)))
    assert is_whole(ask(if_modified_since=modified(export, seconds=-1)))
    assert is_whole(ask(if_modified_since="yesterday"))


def test_the_tag_decides_over_the_date(ask, export):
    assert is_whole(ask(if_none_match=OTHER, if_modified_since=modified(export)))


def test_head_is_told_that_nothing_changed_too(browser, export, etag):
    assert is_unchanged(browser.head(file_url(export), headers={"if-none-match": etag}))


def test_whom_has_the_whole_gets_no_part(ask, etag):
    assert is_unchanged(ask(if_none_match=etag, range="bytes=5-"))


# If-Match, If-Unmodified-Since


def test_it_goes_on_only_with_the_same_file(ask, etag):
    for tags in (etag, f"{OTHER}, {etag}", "*"):
        assert is_part(ask(if_match=tags, range="bytes=5-")), tags
    for tags in (OTHER, f"W/{etag}"):
        assert is_refused(ask(if_match=tags, range="bytes=5-")), tags


def test_it_goes_on_only_if_it_was_not_modified_since(ask, export):
    assert is_part(ask(if_unmodified_since=modified(export), range="bytes=5-"))
    earlier = modified(export, seconds=-1)
    assert is_refused(ask(if_unmodified_since=earlier, range="bytes=5-"))


def test_programs_are_refused_in_json(ask):
    answer = ask(if_match=OTHER, accept="application/json")
    assert (answer.status_code, set(answer.json())) == (412, {"error"})


# If-Range


def test_a_part_of_the_same_file_goes_on(ask, export, etag):
    assert is_part(ask(if_range=etag, range="bytes=5-"))
    assert is_part(ask(if_range=modified(export), range="bytes=5-"))


@pytest.mark.parametrize("tag", [OTHER, "W/{etag}", "{etag}, {etag}", "*", "", "garbage"])
def test_a_part_of_another_file_begins_anew(ask, etag, tag):
    assert is_whole(ask(if_range=tag.format(etag=etag), range="bytes=5-"))


def test_only_the_very_date_is_the_same(ask, export):
    for off in (-1, 1):
        assert is_whole(ask(if_range=modified(export, seconds=off), range="bytes=5-"))


def test_a_part_beyond_the_end_of_another_file_begins_anew(ask, etag):
    assert is_whole(ask(if_range=OTHER, range="bytes=9999-"))
    assert ask(if_range=etag, range="bytes=9999-").status_code == 416


def test_if_range_alone_says_nothing(ask, etag):
    assert is_whole(ask(if_range=etag))
    assert is_whole(ask(if_range=OTHER))


# A result that was replaced


def test_whoever_has_a_part_of_an_earlier_result_gets_the_whole_new_one(ask, export, etag):
    other = uuid.uuid4()
    new = b"a new result, longer than the first one was"
    Export.objects.filter(pk=export.pk).update(execution_id=other, size=store(export, other, [new]))
    answer = ask(if_range=etag, range="bytes=5-")
    assert (answer.status_code, answer.getvalue()) == (200, new)
    assert ask(if_match=etag, range="bytes=5-").status_code == 412
    assert ask(if_none_match=etag).status_code == 200


def test_whoever_reads_an_earlier_result_never_reads_on_in_the_new_one(ask, export):
    pieces = iter(ask().streaming_content)
    begun = next(pieces)
    other = uuid.uuid4()
    Export.objects.filter(pk=export.pk).update(
        execution_id=other, size=store(export, other, [FILE.upper()])
    )
    assert begun + b"".join(pieces) == FILE
    assert b"".join(reloaded(export).content()) == FILE.upper()
