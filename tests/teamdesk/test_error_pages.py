"""Pages for what went wrong look like the others and say what to do."""

import pytest
from django.test import Client
from django.urls import path

from teamdesk.urls import urlpatterns as real


def fail(request):
    raise RuntimeError("on purpose")


def misread(request):
    from django.core.exceptions import BadRequest

    raise BadRequest("on purpose")


urlpatterns = [*real, path("fail/", fail), path("misread/", misread)]


@pytest.fixture
def client(settings):
    settings.DEBUG = False
    settings.ROOT_URLCONF = __name__
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(
    ("url", "status", "sentence"),
    [
        ("/nowhere/", 404, "This page does not exist"),
        ("/fail/", 500, "Something went wrong here"),
        ("/misread/", 400, "This request could not be understood"),
    ],
)
def test_each_has_its_page(client, db, url, status, sentence):
    answer = client.get(url)
    assert answer.status_code == status
    assert sentence in answer.content.decode()
    assert "TeamDesk</title>" in answer.content.decode()


def test_403_says_why(client, vera):
    client.force_login(vera)
    answer = client.get("/tickets/new/")
    assert answer.status_code == 403
    assert b"You may not do this" in answer.content


def test_an_old_form_is_explained(settings, alice):
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/accounts/login/", {"username": "alice", "password": "secret"})
    assert answer.status_code == 403
    assert b"This form is too old" in answer.content


def test_the_500_page_needs_no_database(client, django_db_blocker):
    with django_db_blocker.block():
        answer = client.get("/fail/")
    assert b"Something went wrong here" in answer.content


def test_every_page_forbids_inline_code(client, db):
    policy = client.get("/accounts/login/").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy
