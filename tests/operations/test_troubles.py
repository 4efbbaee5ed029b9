"""Errors in groups, and the verbs on a whole group with each row's outcome told."""

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from tasks.models import BackgroundTask, TaskStatus
from tasks.operations import troubles as module
from tasks.operations.troubles import troubles

pytestmark = pytest.mark.django_db


@pytest.fixture
def act(client, operator):
    """``act(status, error, verb)``: presses a group's button."""

    def press(status, error, verb, kind="CHORE"):
        client.force_login(operator)
        fields = {"status": status, "kind": kind, "error": error, "verb": verb}
        return client.post("/operations/group/", fields)

    return press


def test_errors_that_differ_in_numbers_are_one_group(busy_ledger):
    assert [(each.status, each.count, each.error) for each in troubles()] == [
        ("FAILED", 9, "TimeoutError: no answer in # s"),
        ("FAILED", 1, "ValueError: <b>no</b> such column"),
        ("WAITING", 3, "ConnectionError: printer # is on fire"),
    ]


def test_only_the_first_line_tells_errors_apart(make_task):
    for line in ("one", "two"):
        make_task("FAILED", last_error=f"Boom\n{line}")
    assert [(each.count, each.error) for each in troubles()] == [(2, "Boom")]


def test_kinds_are_apart(make_task):
    make_task("FAILED", last_error="Boom")
    make_task("FAILED", kind="OTHER", last_error="Boom")
    assert len(troubles()) == 2


def test_text_from_outside_is_escaped(client, operator, busy_ledger):
    client.force_login(operator)
    text = client.get("/operations/").content.decode()
    assert "<b>no</b>" not in text and "&lt;b&gt;no&lt;/b&gt; such column" in text


def test_a_group_is_retried_and_no_other_task(act, busy_ledger):
    assert act("FAILED", "TimeoutError: no answer in # s", "retry").url == "/operations/"
    assert BackgroundTask.objects.filter(run=1, status=TaskStatus.WAITING).count() == 9
    busy_ledger.refresh_from_db()
    assert (busy_ledger.run, busy_ledger.status) == (0, TaskStatus.FAILED)
    assert LogEntry.objects.count() == 9  # the admin's history says who asked for it


def test_one_whose_key_is_held_is_told_and_the_others_go(act, make_task, told):
    held = [make_task("FAILED", last_error="Boom", dedup_key=f"key {n}") for n in range(3)]
    make_task("WAITING", dedup_key="key 1")
    text = told(act("FAILED", "Boom", "retry"))
    assert f"another live task holds the dedup key “key 1”: #{held[1].pk}" in text
    assert f"To be run again: #{held[0].pk}, #{held[2].pk}" in text


def test_those_that_try_again_can_be_cancelled(act, busy_ledger):
    act("WAITING", "ConnectionError: printer # is on fire", "cancel")
    assert BackgroundTask.objects.filter(status=TaskStatus.CANCELLED).count() == 3
    assert BackgroundTask.objects.filter(status=TaskStatus.WAITING).count() == 1


def test_more_than_one_request_can_bear_is_done_in_parts(act, busy_ledger, told, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 5)
    text = told(act("FAILED", "TimeoutError: no answer in # s", "retry"))
    assert "4 more have this error" in text
    assert BackgroundTask.objects.filter(run=1).count() == 5
    act("FAILED", "TimeoutError: no answer in # s", "retry")
    assert BackgroundTask.objects.filter(run=1).count() == 9


@pytest.mark.parametrize(
    ("status", "error", "verb"),
    [
        ("COMPLETED", "", "retry"),
        ("FAILED", "Boom", "cancel"),
        ("FAILED", "Boom", "explode"),
        ("", "", ""),
        ("FAILED", "Bo\0om", "retry"),
        ("FAILED", "gone", "retry"),
    ],
)
def test_what_makes_no_sense_changes_nothing_and_says_so(act, make_task, told, status, error, verb):
    make_task("COMPLETED")
    make_task("FAILED", last_error="Boom")
    before = list(BackgroundTask.objects.order_by("pk").values_list("status", "run"))
    if error == "Bo\0om":  # what is not there cannot be asked for
        error = "Bo\0omm"
    response = act(status, error, verb)
    assert response.status_code == 302
    assert "Nothing was changed" in told(response)
    assert list(BackgroundTask.objects.order_by("pk").values_list("status", "run")) == before


def test_who_may_only_look_cannot_act(client, observer, busy_ledger):
    client.force_login(observer)
    assert "Retry all" not in client.get("/operations/").content.decode()
    fields = {"status": "FAILED", "kind": "CHORE", "error": "x", "verb": "retry"}
    assert client.post("/operations/group/", fields).status_code == 403
    for verb in ("retry", "cancel"):
        url = reverse(f"operations_{verb}", args=[busy_ledger.pk])
        assert client.post(url).status_code == 403
    busy_ledger.refresh_from_db()
    assert busy_ledger.run == 0
