import pytest
from django.urls import reverse

from tickets.models import User

pytestmark = pytest.mark.django_db
ADD = reverse("admin:tickets_user_add")


def page(user, verb="change"):
    return reverse(f"admin:tickets_user_{verb}", args=[user.pk])


def form(user, **changes):
    fields = {
        "username": user.username,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "email": user.email,
        "is_active": "on",
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        "language": user.language,
        "time_zone": user.time_zone,
        "theme": user.theme,
        "memberships-TOTAL_FORMS": 0,
        "memberships-INITIAL_FORMS": 0,
    }
    return fields | changes


def test_a_person_is_added_with_a_password_and_preferences(client, root):
    client.force_login(root)
    fields = {
        "username": "dora", "usable_password": "true", "password1": "long-and-odd-42",
        "password2": "long-and-odd-42", "first_name": "Dora", "last_name": "Diaz",
        "email": "dora@example.org", "language": "zh-hans", "time_zone": "Asia/Shanghai",
        "theme": "dark",
    }  # fmt: skip
    assert client.get(ADD).status_code == 200
    response = client.post(ADD, fields)
    assert response.status_code == 302, response.context["errors"]
    dora = User.objects.get(username="dora")
    assert dora.check_password("long-and-odd-42")
    assert (dora.language, dora.time_zone, dora.theme) == ("zh-hans", "Asia/Shanghai", "dark")


def test_a_name_that_is_taken_is_refused_in_the_form(client, root, bob):
    client.force_login(root)
    passwords = {"password1": "long-and-odd-42", "password2": "long-and-odd-42"}
    fields = {"username": "BOB", "usable_password": "true", "theme": ""} | passwords
    response = client.post(ADD, fields)
    assert response.status_code == 200
    assert "username" in response.context["adminform"].form.errors


def test_preferences_are_changed(client, root, bob):
    client.force_login(root)
    response = client.post(page(bob), form(bob, time_zone="Europe/Berlin", theme="light"))
    assert response.status_code == 302, response.context["errors"]
    bob.refresh_from_db()
    assert (bob.time_zone, bob.theme) == ("Europe/Berlin", "light")


def test_an_unknown_time_zone_is_refused_in_the_form(client, root, bob):
    client.force_login(root)
    response = client.post(page(bob), form(bob, time_zone="Mars/Olympus"))
    assert response.status_code == 200
    assert "Mars/Olympus" in response.content.decode()


def test_a_password_is_changed(client, root, bob):
    client.force_login(root)
    url = reverse("admin:auth_user_password_change", args=[bob.pk])
    passwords = {"password1": "long-and-odd-42", "password2": "long-and-odd-42"}
    assert client.get(url).status_code == 200
    assert client.post(url, passwords | {"usable_password": "true"}).status_code == 302
    bob.refresh_from_db()
    assert bob.check_password("long-and-odd-42")


def test_a_membership_is_added_on_the_persons_page(client, root, bob, billing):
    client.force_login(root)
    row = {"memberships-TOTAL_FORMS": 1, "memberships-0-team": billing.pk,
           "memberships-0-user": bob.pk, "memberships-0-role": "viewer"}  # fmt: skip
    response = client.post(page(bob), form(bob, **row))
    assert response.status_code == 302, response.context["errors"]
    assert bob.memberships.get(team=billing).role == "viewer"


def test_people_are_not_deleted(client, root, bob, run_action):
    client.force_login(root)
    assert client.post(page(bob, "delete"), {"post": "yes"}).status_code == 403
    run_action(client, reverse("admin:tickets_user_changelist"), "delete_selected", bob)
    assert User.objects.filter(pk=bob.pk).exists()


# Staff who may edit people, but are no superusers


@pytest.fixture
def clerk(make_staff):
    return make_staff("cleo", "tickets.view_user", "tickets.change_user", "tickets.add_user")


def test_they_cannot_give_rights(client, clerk):
    client.force_login(clerk)
    assert client.get(page(clerk)).status_code == 200
    fields = form(clerk, first_name="Cleo", is_staff="on", is_superuser="on")
    assert client.post(page(clerk), fields).status_code == 302
    clerk.refresh_from_db()
    assert (clerk.first_name, clerk.is_superuser) == ("Cleo", False)


def test_they_cannot_change_superusers_nor_their_passwords(client, clerk, root):
    client.force_login(clerk)
    assert client.get(page(root)).status_code == 200
    assert client.post(page(root), form(root, email="x@example.org")).status_code == 403
    url = reverse("admin:auth_user_password_change", args=[root.pk])
    assert client.post(url, {"password1": "abc", "password2": "abc"}).status_code == 403
