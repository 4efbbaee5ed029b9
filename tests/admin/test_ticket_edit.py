from datetime import UTC, datetime

import pytest
from django.urls import reverse

from tasks.models import BackgroundTask
from tickets.models import Ticket

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


def page(ticket, verb="change"):
    return reverse(f"admin:tickets_ticket_{verb}", args=[ticket.pk])


def test_a_change_is_saved_with_history_and_its_actor(client, ticket, bob, ticket_form):
    client.force_login(bob)
    fields = ticket_form(
        ticket, priority="urgent", assignee=bob.pk, tags="printer, paper",
        due_at_0="2030-01-02", due_at_1="10:30:00",
    )  # fmt: skip
    response = client.post(page(ticket), fields)
    assert response.status_code == 302, response.context["errors"]
    ticket.refresh_from_db()
    assert (ticket.priority, ticket.assignee, ticket.tags) == ("urgent", bob, ["printer", "paper"])
    assert ticket.due_at == datetime(2030, 1, 2, 10, 30, tzinfo=UTC)
    changed = ticket.events.filter(kind="changed")
    assert {event.field for event in changed} == {"priority", "assignee", "tags", "due_at"}
    assert {event.actor for event in changed} == {bob}
    assert BackgroundTask.objects.waiting().filter(ticket=ticket, kind="REMINDER").count() == 1


@pytest.mark.parametrize(
    ("due_at", "shown"),
    [
        (datetime(2030, 5, 1, 10, 30, 0, 250, tzinfo=UTC), ("2030-05-01", "12:30:00")),
        # Clocks go back at 1:00 UTC, so it is the second 2:30 of that night.
        (datetime(2030, 10, 27, 1, 30, tzinfo=UTC), ("2030-10-27", "02:30:00")),
    ],
)
def test_untouched_fields_are_no_change(client, ticket, bob, ticket_form, due_at, shown):
    bob.time_zone = "Europe/Berlin"
    bob.save()
    ticket.edit(by=bob, changes={"description": "one\ntwo", "due_at": due_at})
    client.force_login(bob)
    fields = ticket_form(ticket, priority="urgent", description="one\r\ntwo")
    fields |= {"due_at_0": shown[0], "due_at_1": shown[1]}
    content = client.get(page(ticket)).content.decode()
    assert all(f'value="{part}"' in content for part in shown)
    response = client.post(page(ticket), fields)
    assert response.status_code == 302, response.context["errors"]
    latest = ticket.events.filter(version=3)
    assert [event.field for event in latest] == ["priority"]


def test_the_history_is_shown_and_cannot_be_edited(client, ticket, bob, ticket_form):
    ticket.set_priority("high", by=bob)
    ticket.comment(by=bob, body="<b>Toner</b> is out")
    client.force_login(bob)
    content = client.get(page(ticket)).content.decode()
    assert "Bob Berg" in content
    assert "&lt;b&gt;Toner&lt;/b&gt; is out" in content
    assert 'name="events-0-new_text"' not in content
    events = ticket.events.count()
    fields = ticket_form(ticket, **{"events-TOTAL_FORMS": 1, "events-0-kind": "changed"})
    assert client.post(page(ticket), fields).status_code == 302
    assert ticket.events.count() == events


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("subject", "", "required"),
        ("subject", "a\0b", "Null characters"),
        ("subject", "x" * 300, "at most 200"),
        ("requester_email", "nonsense", "valid email"),
        ("due_at_0", "yesterday", "valid date"),
        ("due_at_0", "9999-12-31", ""),
        ("status", "eaten", "valid choice"),
        ("team", "999999", "valid choice"),
        ("team", "x", "valid choice"),
        ("assignee", "x", "valid choice"),
        ("assignee", "9" * 40, "valid choice"),
        ("tags", ",".join(map(str, range(30))), "20 tags"),
        ("tags", "y" * 60, "50"),
        ("version_seen", "77", "does not exist"),
        ("version_seen", "x", ""),
    ],
)
def test_a_bad_value_is_shown_in_the_form(
    client, ticket, bob, ticket_form, field, value, complaint
):
    client.force_login(bob)
    changes = {"priority": "high", field: value}
    if field == "due_at_0":
        changes["due_at_1"] = "23:59:59"
    response = client.post(page(ticket), ticket_form(ticket, **changes))
    assert response.status_code == 200
    assert response.context["errors"]
    assert complaint in response.content.decode()
    ticket.refresh_from_db()
    assert ticket.priority == "normal"
    assert not ticket.events.filter(kind="changed").exists()


def test_an_assignee_who_cannot_work_it_is_refused_in_the_form(
    client, ticket, bob, charlie, ticket_form
):
    client.force_login(bob)
    response = client.post(page(ticket), ticket_form(ticket, assignee=charlie.pk))
    assert response.status_code == 200
    assert "Charlie Chen cannot work tickets of the team Support." in response.content.decode()
    ticket.refresh_from_db()
    assert ticket.assignee is None


def test_a_move_to_a_team_of_others_is_refused_in_the_form(
    client, ticket, bob, billing, ticket_form
):
    client.force_login(bob)
    response = client.post(page(ticket), ticket_form(ticket, team=billing.pk))
    assert response.status_code == 200
    assert response.context["errors"]
    ticket.refresh_from_db()
    assert ticket.team.slug == "support"


# Two people at once


def test_what_only_i_changed_is_saved_beside_the_changes_of_others(
    client, ticket, alice, bob, ticket_form
):
    fields = ticket_form(ticket, subject="Broken scanner")
    ticket.set_priority("urgent", by=alice)
    client.force_login(bob)
    assert client.post(page(ticket), fields).status_code == 302
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.priority) == ("Broken scanner", "urgent")


def test_what_both_changed_is_shown_with_both_values(client, ticket, alice, bob, ticket_form):
    fields = ticket_form(ticket, subject="Mine", description="New")
    ticket.edit(by=alice, changes={"subject": "Theirs", "priority": "urgent", "tags": ["a", "b"]})
    client.force_login(bob)
    response = client.post(page(ticket), fields)
    content = response.content.decode()
    assert response.status_code == 200
    assert "Someone else changed this meanwhile to “Theirs”" in content
    assert 'value="Mine"' in content
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.description) == ("Theirs", "New")

    # Saving the page again replaces theirs, and undoes nothing else that others did.
    form = response.context["adminform"].form
    again = {bound.html_name: bound.value() for bound in form if bound.name != "due_at"}
    response = client.post(
        page(ticket), ticket_form(ticket) | {k: v or "" for k, v in again.items()}
    )
    assert response.status_code == 302, response.context["errors"]
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.priority, ticket.tags) == ("Mine", "urgent", ["a", "b"])


def test_after_a_conflict_the_page_shows_a_due_date_set_by_others(
    client, ticket, alice, bob, ticket_form
):
    fields = ticket_form(ticket, subject="Mine")
    due_at = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    ticket.edit(by=alice, changes={"subject": "Theirs", "due_at": due_at})
    client.force_login(bob)
    content = client.post(page(ticket), fields).content.decode()
    assert 'value="2031-05-06"' in content
    assert 'value="07:08:09"' in content


# Who may


def test_outsiders_find_nothing(client, ticket, charlie, ticket_form):
    client.force_login(charlie)
    assert client.get(page(ticket)).status_code == 302  # the admin says: it does not exist
    client.post(page(ticket), ticket_form(ticket, priority="high"))
    listed = client.get(reverse("admin:tickets_ticket_changelist")).content.decode()
    assert "Broken printer" not in listed
    ticket.refresh_from_db()
    assert ticket.priority == "normal"


def test_viewers_of_the_team_only_read(client, ticket, vera, ticket_form):
    client.force_login(vera)
    content = client.get(page(ticket)).content.decode()
    assert "Broken printer" in content
    assert 'name="_save"' not in content
    assert client.post(page(ticket), ticket_form(ticket, priority="high")).status_code == 403


def test_superusers_change_every_ticket(client, ticket, root, ticket_form):
    client.force_login(root)
    assert client.post(page(ticket), ticket_form(ticket, priority="low")).status_code == 302
    assert ticket.events.get(field="priority").actor == root


def test_tickets_are_not_deleted(client, ticket, root, run_action):
    client.force_login(root)
    assert client.get(page(ticket, "delete")).status_code == 403
    assert client.post(page(ticket, "delete"), {"post": "yes"}).status_code == 403
    run_action(client, reverse("admin:tickets_ticket_changelist"), "delete_selected", ticket)
    assert Ticket.objects.filter(pk=ticket.pk).exists()
