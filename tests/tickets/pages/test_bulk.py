"""The pages that change many tickets."""

import pytest

from tasks.worker import run_job
from tickets.models import BulkEdit, SavedView, Ticket
from tickets.views import bulk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def two(make_ticket):
    return [make_ticket("Fire"), make_ticket("Smoke")]


def seen(*tickets):
    return ",".join(f"{ticket.pk}:{ticket.version}" for ticket in tickets)


def test_agents_are_offered_it_under_the_list_and_viewers_are_not(client, two, bob, vera):
    client.force_login(bob)
    assert b'formaction="/tickets/bulk/"' in client.get("/tickets/").content
    assert b"/tickets/bulk/?all=1&amp;status=open" in client.get("/tickets/?status=open").content
    client.force_login(vera)
    assert b"/tickets/bulk/" not in client.get("/tickets/").content


def test_it_shows_what_will_be_changed_then_changes_it_once(client, two, bob):
    client.force_login(bob)
    page = client.get(f"/tickets/bulk/?id={two[0].pk}&id={two[1].pk}")
    assert "Change 2 tickets" in page.content.decode()
    fields = {
        "submission": page.context["submission"],
        "tickets": page.context["form"]["tickets"].value(),
        "priority": "high",
        "assignee": "me",
        "add_tags": "vpn, fire",
    }
    assert sorted(fields["tickets"].split(",")) == sorted(seen(*two).split(","))
    answers = [client.post("/tickets/bulk/", fields) for _ in range(2)]
    bulk_edit = BulkEdit.objects.get()
    assert [answer.url for answer in answers] == [f"/tickets/bulk/{bulk_edit.pk}/"] * 2
    assert b"hx-get" in client.get(answers[0].url).content  # it waits, and asks for itself
    run_job(bulk_edit.pk, 0)
    for _reload in range(2):
        result = client.get(answers[0].url).content.decode()
        assert 'hx-trigger="every 1s"' not in result
        assert all(f'href="/tickets/{ticket.pk}/"' in result for ticket in two)
    for ticket in Ticket.objects.all():
        assert (ticket.priority, ticket.assignee, ticket.tags) == ("high", bob, ["vpn", "fire"])


def test_all_of_the_list_are_the_tickets_that_its_filters_select(client, two, make_ticket, bob):
    make_ticket("Other")
    client.force_login(bob)
    page = client.get("/tickets/bulk/?all=1&q=fire")
    assert page.context["form"]["tickets"].value() == seen(two[0])
    assert page.context["total"] == 1


def test_a_filter_that_was_not_understood_selects_nothing(client, two, bob):
    client.force_login(bob)
    page = client.get("/tickets/bulk/?all=1&status=melted")
    assert page.context["total"] == 0
    assert "melted" in page.content.decode()


def test_all_of_a_saved_view_are_its_tickets(client, two, bob):
    view = SavedView.objects.save_view(
        bob, name="Fires", team=None, filters={"q": "fire"}, zone="UTC", columns=["id", "subject"]
    )
    client.force_login(bob)
    shown = client.get(f"/tickets/?view={view.pk}").content
    assert b"/tickets/bulk/?all=1&amp;q=fire" in shown
    for query in ("q=fire", f"view={view.pk}"):
        page = client.get(f"/tickets/bulk/?all=1&{query}")
        assert page.context["form"]["tickets"].value() == seen(two[0])


def test_more_than_the_limit_is_said(client, two, bob, monkeypatch):
    monkeypatch.setattr(bulk, "MAX_BULK", 1)
    client.force_login(bob)
    page = client.get("/tickets/bulk/?all=1")
    assert "At most 1 tickets are changed at once" in page.content.decode()
    assert (page.context["total"], page.context["left_out"]) == (1, 1)


def test_forged_ids_show_nothing_of_the_ticket(client, two, bob, charlie):
    client.force_login(charlie)
    page = client.get(f"/tickets/bulk/?id={two[0].pk}").content.decode()
    assert "Fire" not in page
    assert "No ticket is chosen" in page
    answer = client.post(
        "/tickets/bulk/", {"tickets": f"{seen(*two)},999999:1", "status": "closed"}
    )
    run_job(BulkEdit.objects.get().pk, 0)
    result = client.get(answer.url).content.decode()
    assert "Fire" not in result
    assert f"/tickets/{two[0].pk}/" not in result
    assert result.count("<strong>not found</strong>") == 3
    # Nor does a form that comes back with an error.
    assert "Fire" not in client.post("/tickets/bulk/", {"tickets": seen(*two)}).content.decode()


def test_the_due_date_is_set_in_the_persons_zone_or_cleared(client, two, bob):
    bob.time_zone = "Asia/Kathmandu"
    bob.save()
    client.force_login(bob)
    client.post("/tickets/bulk/", {"tickets": seen(*two), "due_at": "2031-05-01T10:00"})
    run_job(BulkEdit.objects.latest("pk").pk, 0)
    two[0].refresh_from_db()
    assert two[0].due_at.isoformat() == "2031-05-01T04:15:00+00:00"
    client.post("/tickets/bulk/", {"tickets": f"{two[0].pk}:2", "clear_due": "on"})
    run_job(BulkEdit.objects.latest("pk").pk, 0)
    two[0].refresh_from_db()
    assert two[0].due_at is None


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "at least one change"),
        ({"due_at": "soon"}, "is not a date and time"),
        ({"due_at": "2031-05-01T10:00", "clear_due": "on"}, "not both"),
        ({"assignee": "999999"}, "Select a valid choice"),
        ({"tickets": "1:x"}, "damaged"),
        ({"add_tags": "x" * 51}, "At most 50 characters"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_typed_is_lost(client, two, bob, fields, complaint):
    client.force_login(bob)
    given = {"tickets": seen(*two), "remove_tags": "kept text", **fields}
    if not fields:
        del given["remove_tags"]
    answer = client.post("/tickets/bulk/", given)
    assert answer.status_code == 422
    assert complaint in answer.content.decode()
    if fields and "tickets" not in fields:
        assert "kept text" in answer.content.decode()
    assert not BulkEdit.objects.exists()


def test_cancelled_it_says_so_and_can_go_on(client, two, bob):
    client.force_login(bob)
    url = client.post("/tickets/bulk/", {"tickets": seen(*two), "priority": "low"}).url
    assert "Cancelled" in client.post(f"{url}cancel/", follow=True).content.decode()
    client.post(f"{url}retry/")
    run_job(BulkEdit.objects.get().pk, 1)
    assert "Done." in client.get(url).content.decode()


def test_a_result_takes_the_same_queries_for_any_number(
    client, make_ticket, bob, django_assert_num_queries
):
    tickets = [make_ticket(f"Lift {n}") for n in range(12)]
    client.force_login(bob)
    counts = []
    for some in (tickets[:2], tickets):
        url = client.post("/tickets/bulk/", {"tickets": seen(*some), "add_tags": "x"}).url
        run_job(BulkEdit.objects.latest("pk").pk, 0)
        with django_assert_num_queries(10, exact=False) as queries:
            client.get(url)
        counts.append(len(queries))
    assert counts[0] == counts[1]
