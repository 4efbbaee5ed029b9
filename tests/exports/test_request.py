"""Asking for an export: one transaction stores the request and its task."""

import pytest
from django.core.exceptions import ValidationError

from exports import columns
from exports.models import Export
from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, TaskStatus
from tests.exports.conftest import records_of, reloaded

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_stores_what_was_asked_for_with_its_task(alice, support):
    alice.time_zone, alice.language = "Asia/Shanghai", "zh-hans"
    export = Export.objects.request(
        by=alice, filters={"status": ["open"], "q": "火"}, columns=["subject", "id"]
    )
    export = reloaded(export)
    assert export.requester == alice
    assert export.filters == {"status": ["open"], "q": "火"}
    assert export.columns == ["id", "subject"]
    assert (export.time_zone, export.language) == ("Asia/Shanghai", "zh-hans")
    task = export.task
    assert (task.pk, task.kind, task.status, task.run) == (export.pk, "EXPORT", "WAITING", 0)
    assert (task.owner, task.max_attempts, task.payload) == (alice, 3, {})


def test_it_waits_undispatched_until_somebody_dispatches_and_works(alice, support, ticket, run):
    wanted = ticket("One that fits", status="open")
    ticket("One that does not", status="closed")
    export = Export.objects.request(by=alice, filters={"status": ["open"]})
    task = BackgroundTask.objects.get(pk=export.pk)
    assert (task.status, task.run, task.dispatched_at) == (TaskStatus.WAITING, 0, None)

    dispatch_once()
    task.refresh_from_db()
    assert task.status == TaskStatus.WAITING
    assert task.dispatched_at is not None

    export = run(export)
    assert export.task.status == TaskStatus.COMPLETED
    assert [record["id"] for record in records_of(export)] == [str(wanted.pk)]


def test_it_takes_the_columns_of_that_kind_of_row_when_none_are_named(alice, support):
    for kind, known in columns.COLUMNS_OF.items():
        export = Export.objects.request(by=alice, filters={}, row_kind=kind)
        assert export.columns == [key for key in known if not key.endswith("_offset")]


def test_it_refuses_a_column_of_another_kind_of_row(alice, support):
    with pytest.raises(ValidationError, match="There is no column “author”"):
        Export.objects.request(by=alice, filters={}, columns=["id", "author"])
    with pytest.raises(ValidationError, match="There is no kind of row “comments”"):
        Export.objects.request(by=alice, filters={}, row_kind="comments")
    assert not BackgroundTask.objects.exists()


def test_it_leaves_nothing_when_the_task_cannot_be_stored(alice, support, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("the ledger refused")

    monkeypatch.setattr(type(BackgroundTask.objects.all()), "enqueue", refuse)
    with pytest.raises(RuntimeError):
        Export.objects.request(by=alice, filters={})
    assert not Export.objects.exists()


def test_it_leaves_no_task_when_the_export_cannot_be_stored(alice, support, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(type(Export.objects.all()), "create", refuse)
    with pytest.raises(RuntimeError):
        Export.objects.request(by=alice, filters={})
    assert not BackgroundTask.objects.exists()


@pytest.mark.parametrize(
    ("filters", "columns", "complaint"),
    [
        ({"status": ["nonsense"]}, None, "nonsense"),
        ({"created_after": "yesterday"}, None, "yesterday"),
        ({}, ["subject", "salary"], "salary"),
        ({}, [], "at least one column"),
    ],
)
def test_it_refuses_what_does_not_exist(alice, support, filters, columns, complaint):
    with pytest.raises(ValidationError, match=complaint):
        Export.objects.request(by=alice, filters=filters, columns=columns)
    assert not BackgroundTask.objects.exists()


def test_it_refuses_a_team_that_one_cannot_see(alice, support, billing):
    with pytest.raises(ValidationError):
        Export.objects.request(by=alice, filters={"team": [str(billing.pk)]})


def test_it_keeps_the_filters_in_words_as_they_were(alice, support):
    export = Export.objects.request(by=alice, filters={"team": [str(support.pk)]})
    support.name = "Renamed"
    support.save()
    assert reloaded(export).filters_shown == [["Team", "Support"]]
