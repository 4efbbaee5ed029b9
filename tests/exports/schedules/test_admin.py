"""Scheduled exports in the admin: to look at."""

import pytest

from tests.exports.schedules.conftest import reread, run_due, schedule

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/admin/exports/scheduledexport/"


@pytest.fixture
def admin(client, root):
    client.force_login(root)
    return client


def test_it_lists_and_shows_them(admin, scheduled):
    page = admin.get(URL, {"q": "alice"}).content.decode()
    assert "Open tickets" in page and "Every Monday at 8 a.m. (Europe/Berlin)" in page
    assert "Open tickets" not in admin.get(URL, {"q": "bob"}).content.decode()
    assert "Status: open" in admin.get(f"{URL}{scheduled.pk}/change/").content.decode()


def test_it_changes_nothing(admin, scheduled):
    assert admin.get(f"{URL}add/").status_code == 403
    assert admin.post(f"{URL}{scheduled.pk}/change/", {"name": "x"}).status_code == 403
    assert admin.post(f"{URL}{scheduled.pk}/delete/", {"post": "yes"}).status_code == 403
    assert reread(scheduled).name == "Open tickets"


def test_it_asks_as_often_for_many_as_for_one(admin, alice, scheduled):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert admin.get(URL).status_code == 200
        return len(captured)

    run_due(scheduled)
    queries()
    one = queries()
    for _number in range(4):
        run_due(schedule(alice))
    assert queries() == one
