"""Logging in and out, and one's own settings."""

import pytest
from django.contrib.auth import get_user

from tickets.models import NotificationKind


def test_it_logs_in_and_goes_where_one_wanted(client, alice):
    page = client.get("/accounts/login/?next=/notifications/").content.decode()
    assert 'name="next" value="/notifications/"' in page
    fields = {"username": "alice", "password": "secret", "next": "/notifications/"}
    answer = client.post("/accounts/login/", fields)
    assert answer.url == "/notifications/"
    assert get_user(client) == alice


def test_a_link_that_leads_back_to_it_ends_at_the_tickets(client, alice):
    client.force_login(alice)
    for back in ("/accounts/login/", "/accounts/login/?next=/accounts/login/"):
        assert client.get("/accounts/login/", {"next": back}).url == "/tickets/"


def test_a_wrong_password_is_explained(client, alice):
    page = client.post("/accounts/login/", {"username": "alice", "password": "wrong"})
    assert b"Please enter a correct username and password" in page.content
    assert b'value="alice"' in page.content
    assert get_user(client).is_anonymous


def test_an_open_page_whose_session_ended_is_loaded_anew(client, db):
    answer = client.get("/accounts/login/?next=/tickets/", headers={"HX-Request": "true"})
    assert answer.headers["HX-Refresh"] == "true"


def test_logging_out_is_a_post(client, alice):
    client.force_login(alice)
    assert client.get("/accounts/logout/").status_code == 405
    assert client.post("/accounts/logout/").url == "/accounts/login/"
    assert get_user(client).is_anonymous


def test_strangers_choose_a_language(client, db):
    assert b"Log in to TeamDesk" in client.get("/accounts/login/").content
    answer = client.post("/accounts/language/", {"language": "zh-hans", "next": "/accounts/login/"})
    assert answer.url == "/accounts/login/"
    assert b'<html lang="zh-hans"' in client.get("/accounts/login/").content


def test_the_browsers_language_is_used_until_one_chooses(client, alice):
    client.force_login(alice)
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9"}
    assert b'lang="zh-hans"' in client.get("/tickets/", headers=chinese).content
    alice.language = "en"
    alice.save()
    assert b'lang="en"' in client.get("/tickets/", headers=chinese).content


def test_choosing_a_language_is_remembered_for_the_person(client, alice):
    client.force_login(alice)
    client.post("/accounts/language/", {"language": "zh-hans"})
    alice.refresh_from_db()
    assert alice.language == "zh-hans"
    client.post("/accounts/language/", {"language": "xx"})
    alice.refresh_from_db()
    assert alice.language == "zh-hans"


def test_the_profile_is_saved(client, alice):
    client.force_login(alice)
    fields = {
        "first_name": "Ada", "last_name": "Byron", "language": "zh-hans",
        "time_zone": "Asia/Shanghai", "theme": "dark",
    }  # fmt: skip
    assert client.post("/accounts/profile/", fields).url == "/accounts/profile/"
    alice.refresh_from_db()
    assert {name: getattr(alice, name) for name in fields} == fields
    page = client.get("/accounts/profile/").content
    assert b'lang="zh-hans" data-bs-theme="dark">' in page


@pytest.mark.parametrize("zone", ["Mars/Olympus", "localtime", "../etc/passwd", "x" * 100, "nul\0"])
def test_an_unknown_zone_is_refused_and_nothing_typed_is_lost(client, alice, zone):
    client.force_login(alice)
    fields = {"first_name": "Ada", "last_name": "Byron", "time_zone": zone}
    answer = client.post("/accounts/profile/", fields)
    assert answer.status_code == 422
    assert b'value="Ada"' in answer.content
    alice.refresh_from_db()
    assert alice.first_name == "Alice"


def test_each_event_is_mailed_or_not_as_one_likes(client, alice):
    client.force_login(alice)
    page = client.get("/accounts/profile/").content.decode()
    assert page.count('type="checkbox"') == page.count('name="mail_') == 5
    assert "alice@example.org" in page
    fields = {"mail_commented": "on", "mail_assigned": "on", "email": "x@evil.example"}
    assert client.post("/accounts/mail/", fields).url == "/accounts/profile/"
    alice.refresh_from_db()
    wants = {kind for kind in NotificationKind.values if alice.wants_mail(kind)}
    assert wants == {"commented", "assigned"}
    assert alice.email == "alice@example.org"


def test_saving_other_settings_leaves_mail_as_it_was(client, alice):
    client.force_login(alice)
    client.post("/accounts/profile/", {"first_name": "Ada"})
    alice.refresh_from_db()
    assert alice.first_name == "Ada"
    assert alice.wants_mail("reminder") and not alice.wants_mail("commented")


def test_who_gets_no_mail_is_told_so(client, alice, settings):
    alice.email = ""
    alice.save()
    client.force_login(alice)
    assert b"You have no e-mail address" in client.get("/accounts/profile/").content
    settings.TEAMDESK_MAIL = False
    assert b"sends no mail at present" in client.get("/accounts/profile/").content


def test_the_password_is_changed_and_one_stays_logged_in(client, alice):
    client.force_login(alice)
    fields = {
        "old_password": "secret",
        "new_password1": "quite-another-7",
        "new_password2": "quite-another-7",
    }
    assert client.post("/accounts/password/", fields).url == "/accounts/profile/"
    alice.refresh_from_db()
    assert alice.check_password("quite-another-7")
    assert client.get("/tickets/").status_code == 200


def test_a_wrong_old_password_changes_nothing(client, alice):
    client.force_login(alice)
    fields = {"old_password": "x", "new_password1": "quite-1-another", "new_password2": "no"}
    answer = client.post("/accounts/password/", fields)
    assert answer.status_code == 422
    assert b"Your old password was entered incorrectly" in answer.content
    alice.refresh_from_db()
    assert alice.check_password("secret")
