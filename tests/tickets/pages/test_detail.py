"""A ticket's page."""

from datetime import timedelta

from django.utils import timezone


def page_of(client, ticket):
    answer = client.get(f"/tickets/{ticket.pk}/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_comments_and_changes_are_told_in_order(client, ticket, alice, bob):
    ticket.comment(by=bob, body="First words")
    ticket.set_status("pending", by=bob)
    ticket.comment(by=alice, body="Last words", is_public=False)
    client.force_login(alice)
    page = page_of(client, ticket)
    places = [
        page.index(text)
        for text in ("opened the ticket", "First words", '"value-new">pending', "Last words")
    ]
    assert places == sorted(places)
    assert page.count("First words") == 1


def test_one_edit_is_one_entry(client, ticket, alice):
    ticket.edit(by=alice, changes={"priority": "high", "tags": ["a"]})
    client.force_login(alice)
    page = client.get(f"/tickets/{ticket.pk}/").context["timeline"]
    assert [len(entry["events"]) for entry in page] == [1, 2]


def test_a_changed_description_shows_both_texts(client, make_ticket, alice):
    ticket = make_ticket(description="Before the fire")
    ticket.edit(by=alice, changes={"description": "After the fire"})
    client.force_login(alice)
    page = page_of(client, ticket)
    assert "<dd>Before the fire</dd>" in page
    assert "<dd>After the fire</dd>" in page


def test_the_systems_doings_name_the_rule(client, ticket, alice):
    ticket.set_priority("high", by=None, reason="due date reached")
    client.force_login(alice)
    page = page_of(client, ticket)
    assert "<strong>System</strong>" in page
    assert "(due date reached)" in page


def test_what_people_write_is_text(client, make_ticket, alice):
    ticket = make_ticket("<b>bold</b>", description="<script>x</script>", tags=["<i>"])
    ticket.comment(by=alice, body="<img src=x>")
    client.force_login(alice)
    page = page_of(client, ticket)
    for markup in ("<b>bold", "<script>x", "<i>", "<img src=x"):
        assert markup not in page


def test_an_address_adds_nothing_to_the_mail(client, make_ticket, alice):
    ticket = make_ticket(requester_email="mara?cc=boss+1&body=x@example.org")
    client.force_login(alice)
    page = page_of(client, ticket)
    assert 'href="mailto:mara%3Fcc%3Dboss%2B1%26body%3Dx@example.org"' in page


def test_a_viewer_sees_no_forms(client, ticket, vera):
    ticket.comment(by=ticket.creator, body="Visible words", is_public=False)
    client.force_login(vera)
    page = page_of(client, ticket)
    assert "Visible words" in page
    assert f"/tickets/{ticket.pk}/comment/" not in page
    assert f"/tickets/{ticket.pk}/edit/" not in page
    assert 'name="version"' not in page


def test_overdue_is_said(client, make_ticket, alice):
    ticket = make_ticket(due_at=timezone.now() - timedelta(days=1))
    client.force_login(alice)
    assert "overdue:" in page_of(client, ticket)
    ticket.resolve(by=alice)
    assert "overdue:" not in page_of(client, ticket)


def test_it_is_not_there_for_outsiders(client, ticket, charlie):
    client.force_login(charlie)
    assert client.get(f"/tickets/{ticket.pk}/").status_code == 404
    assert client.get("/tickets/99999999999999999999/").status_code == 404


def test_the_number_of_queries_does_not_grow(
    client, ticket, alice, bob, django_assert_max_num_queries
):
    ticket.assign(bob, by=alice)
    ticket.comment(by=bob, body="x")
    client.force_login(alice)
    with django_assert_max_num_queries(12) as few:
        page_of(client, ticket)
    for n in range(10):
        ticket.comment(by=bob, body=f"{n}")
        ticket.set_tags([str(n)], by=alice)
    with django_assert_max_num_queries(len(few)):
        page_of(client, ticket)


def test_an_open_page_learns_that_the_ticket_changed(client, ticket, alice, bob):
    client.force_login(alice)
    mark = client.get(f"/tickets/{ticket.pk}/").context["mark"]
    pulse = f"/tickets/{ticket.pk}/pulse/?mark={mark}"
    assert client.get(pulse).status_code == 204
    ticket.comment(by=bob, body="x")
    assert b"This ticket has changed" in client.get(pulse).content
