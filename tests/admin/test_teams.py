import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tickets.models import Team

pytestmark = pytest.mark.django_db
TEAMS = reverse("admin:tickets_team_changelist")


def page(team, verb="change"):
    return reverse(f"admin:tickets_team_{verb}", args=[team.pk])


def form(team, *members):
    fields = {"name": team.name, "slug": team.slug}
    fields |= {"memberships-TOTAL_FORMS": len(members), "memberships-INITIAL_FORMS": 0}
    for number, (user, role) in enumerate(members):
        fields |= {f"memberships-{number}-user": user.pk, f"memberships-{number}-role": role}
        fields |= {f"memberships-{number}-team": team.pk}
    return fields


def test_members_are_added(client, root, billing, bob):
    client.force_login(root)
    response = client.post(page(billing), form(billing, (bob, "lead")))
    assert response.status_code == 302, response.context["errors"]
    assert billing.memberships.get(user=bob).role == "lead"


def test_one_person_twice_is_refused_in_the_form(client, root, billing, bob):
    client.force_login(root)
    response = client.post(page(billing), form(billing, (bob, "lead"), (bob, "agent")))
    assert response.status_code == 200
    assert not billing.memberships.exists()


def test_nonsense_for_a_person_is_refused_in_the_form(client, root, billing, bob):
    client.force_login(root)
    fields = form(billing, (bob, "agent")) | {"memberships-0-user": "x"}
    response = client.post(page(billing), fields)
    assert response.status_code == 200
    assert not billing.memberships.exists()


def test_a_team_with_tickets_cannot_be_deleted(client, root, support, ticket, run_action):
    client.force_login(root)
    assert client.get(page(support, "delete")).status_code == 403
    assert client.post(page(support, "delete"), {"post": "yes"}).status_code == 403
    assert 'value="delete_selected"' not in client.get(TEAMS).content.decode()
    run_action(client, TEAMS, "delete_selected", support)
    assert Team.objects.filter(pk=support.pk).exists()


def test_a_team_without_tickets_can(client, root, billing, charlie):
    client.force_login(root)
    assert client.post(page(billing, "delete"), {"post": "yes"}).status_code == 302
    assert not Team.objects.filter(pk=billing.pk).exists()


def test_the_list_takes_the_same_queries_for_many_teams(client, root, support, bob):
    client.force_login(root)

    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert client.get(TEAMS).status_code == 200
        return len(captured)

    few = queries()
    for number in range(8):
        team = Team.objects.create(name=f"Team {number}", slug=f"team-{number}")
        team.memberships.create(user=bob)
    assert queries() == few
