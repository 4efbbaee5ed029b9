"""Exports in the admin: read-only, and without the files."""

import pytest

from exports.models import Export

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/admin/exports/export/"


@pytest.fixture
def admin(client, root):
    client.force_login(root)
    return client


@pytest.fixture
def export(alice, ticket, run):
    ticket("Fire")
    return run(Export.objects.request(by=alice, filters={"q": "fire"}, columns=["id"]))


def test_it_lists_exports_with_their_state(admin, export):
    page = admin.get(URL, {"q": "alice"}).content.decode()
    assert "Search: fire" in page
    assert f"/admin/tasks/backgroundtask/{export.pk}/change/" in page
    assert "completed" in page


def test_it_shows_one(admin, export):
    page = admin.get(f"{URL}{export.pk}/change/")
    assert page.status_code == 200
    assert str(export.execution_id) in page.content.decode()


def test_it_changes_nothing(admin, export):
    assert admin.get(f"{URL}add/").status_code == 403
    assert admin.post(f"{URL}{export.pk}/change/", {"rows": "7"}).status_code == 403
    assert admin.post(f"{URL}{export.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Export.objects.get(pk=export.pk).rows == 1


def test_it_asks_as_often_for_many_as_for_one(admin, alice, export):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert admin.get(URL).status_code == 200
        return len(captured)

    queries()
    one = queries()
    for _ in range(5):
        Export.objects.request(by=alice, filters={}, columns=["id"])
    assert queries() == one
