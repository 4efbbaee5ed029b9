import uuid

import pytest
from django.urls import reverse
from django.utils import timezone

from tasks.models import TaskAttempt
from tickets.models import Team, Ticket

pytestmark = pytest.mark.django_db

EVIL = "<script>alert('x')</script>"


@pytest.fixture
def page(client, operator):
    def get(task):
        client.force_login(operator)
        response = client.get(reverse("admin:tasks_backgroundtask_change", args=[task.pk]))
        assert response.status_code == 200
        return response.content.decode()

    return get


def attempt(task, number, **fields):
    return TaskAttempt.objects.create(
        task=task, run=0, attempt=number, execution_id=uuid.uuid4(), **fields
    )


def test_it_shows_the_job_the_payload_and_the_error(page, make_task):
    task = make_task("FAILED", payload={"team": 3, "note": "käse"}, last_error="Boom")
    content = page(task)
    assert f"{task.pk}:0" in content
    assert "{\n  &quot;note&quot;: &quot;käse&quot;,\n  &quot;team&quot;: 3\n}" in content
    assert '<pre class="ledger-text">Boom</pre>' in content


def test_attempts_are_listed_with_their_tracebacks_newest_first(page, make_task):
    task = make_task("FAILED")
    for number in (1, 2):
        attempt(
            task,
            number,
            outcome="failed",
            finished_at=timezone.now(),
            worker=f"worker-{number}",
            error=f"ValueError: {number}",
            traceback=f'  File "x.py", line {number}, in handler\nValueError: {number}',
        )
    content = page(task)
    assert "line 1, in handler\nValueError: 1</pre>" in content
    assert content.index("worker-2") < content.index("worker-1")


def test_text_from_outside_is_escaped_everywhere(client, page, make_task):
    task = make_task("FAILED", last_error=EVIL, dedup_key=EVIL, payload={"text": EVIL})
    attempt(task, 1, outcome="failed", finished_at=timezone.now(), error=EVIL, traceback=EVIL,
            worker=EVIL)  # fmt: skip
    content = page(task)
    assert EVIL not in content
    assert content.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;") >= 6
    assert EVIL not in client.get(reverse("admin:tasks_backgroundtask_changelist")).content.decode()


def test_the_ticket_is_named_by_its_number_alone(page, make_task):
    team = Team.objects.create(name="Support", slug="support")
    ticket = Ticket.objects.create(team=team, subject="A secret of the team")
    content = page(make_task(ticket=ticket, team=team))
    assert f'href="/admin/tickets/ticket/{ticket.pk}/change/">#{ticket.pk}</a>' in content
    assert "A secret of the team" not in content


def test_it_explains_how_to_read_it(page, make_task):
    assert "is not stuck" in page(make_task(dispatched_at=timezone.now()))


def test_a_number_that_is_no_task_leads_back(client, operator):
    client.force_login(operator)
    for number in ("1", "9" * 30, "x"):
        response = client.get(reverse("admin:tasks_backgroundtask_change", args=[number]))
        assert response.status_code == 302
