import pytest

from tickets.models import Ticket


@pytest.fixture
def make_ticket(support, alice):
    """``make_ticket(subject, **fields)``: one of support's, opened by alice."""

    def make(subject="Broken printer", by=alice, team=support, **fields):
        return Ticket.objects.open(by=by, team=team, subject=subject, **fields)

    return make


@pytest.fixture
def ticket(make_ticket):
    return make_ticket()


@pytest.fixture
def act(client, ticket):
    """``act(verb, fields, **headers)``: posts a verb of the ticket's page as who is logged in."""

    def post(verb, **fields):
        headers = fields.pop("headers", {})
        return client.post(f"/tickets/{ticket.pk}/{verb}/", fields, headers=headers)

    return post
