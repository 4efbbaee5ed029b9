"""The link in "your export is ready" opens for the one who is told, and for nobody else."""

import pytest

from exports.models import Export
from tests.exports.conftest import content_of
from tickets.models import Notification

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"accept": "application/json"}
OTHERS = ("bob", "vera", "charlie", "root")


@pytest.fixture
def export(alice, ticket, run):
    ticket()
    return run(Export.objects.request(alice, {}, ["id"]))


@pytest.fixture
def link(export):
    return Notification.objects.get().url


def test_it_opens_the_page_and_the_file_for_its_owner(client, alice, export, link):
    client.force_login(alice)
    notice = Notification.objects.get()
    answer = client.post(f"/notifications/{notice.pk}/open/", follow=True)
    assert answer.redirect_chain == [(link, 302)]
    assert f"{link}download/" in answer.content.decode()
    assert client.get(f"{link}download/").getvalue() == content_of(export)


@pytest.mark.parametrize("name", OTHERS)
def test_it_opens_nothing_for_another(client, link, name, request):
    """Not for members of the same team, who may see the same tickets, nor for a superuser."""
    client.force_login(request.getfixturevalue(name))
    for path in (link, f"{link}download/"):
        assert client.get(path).status_code == 404
        assert client.head(path).status_code == 404
        assert client.get(path, headers={"range": "bytes=0-0"}).status_code == 404
        answer = client.get(path, headers=JSON)
        assert (answer.status_code, set(answer.json())) == (404, {"error"})
    notice = Notification.objects.get()
    assert client.post(f"/notifications/{notice.pk}/open/").status_code == 404


def test_it_asks_who_comes_to_log_in_first(client, alice, link):
    for path in (link, f"{link}download/"):
        answer = client.get(path)
        assert (answer.status_code, answer["Location"]) == (302, f"/accounts/login/?next={path}")
        assert client.get(path, headers=JSON).status_code == 401
    form = {"username": "alice", "password": "secret"}
    answer = client.post(f"/accounts/login/?next={link}", form | {"next": link}, follow=True)
    assert answer.redirect_chain[-1][0] == link
    assert answer.status_code == 200


def test_it_shows_its_owner_no_file_without_the_right_to_it(client, alice, support, link):
    support.memberships.filter(user=alice).delete()
    client.force_login(alice)
    page = client.get(link)
    assert page.status_code == 200
    assert "no longer have access" in page.content.decode()
    assert client.get(f"{link}download/").status_code == 404
