import pytest
from django.urls import reverse

from tasks.models import BackgroundTask, DispatcherStatus, TaskAttempt

pytestmark = pytest.mark.django_db


@pytest.fixture
def task(make_task):
    return make_task("FAILED", last_error="Boom")


def page(verb, *args, model="backgroundtask"):
    return reverse(f"admin:tasks_{model}_{verb}", args=args)


def test_it_cannot_be_added_to(client, root):
    client.force_login(root)
    assert client.get(page("add")).status_code == 403
    assert client.post(page("add"), {"kind": "CHORE"}).status_code == 403
    assert not BackgroundTask.objects.exists()


def test_it_cannot_be_changed(client, root, task):
    client.force_login(root)
    assert client.get(page("change", task.pk)).status_code == 200
    assert client.post(page("change", task.pk), {"status": "COMPLETED"}).status_code == 403
    task.refresh_from_db()
    assert task.status == "FAILED"


def test_it_cannot_be_deleted(client, root, task, run_action):
    client.force_login(root)
    assert client.get(page("delete", task.pk)).status_code == 403
    assert client.post(page("delete", task.pk), {"post": "yes"}).status_code == 403
    run_action(client, page("changelist"), "delete_selected", task)
    assert BackgroundTask.objects.filter(pk=task.pk).exists()


def test_the_form_offers_no_field(client, root, task):
    client.force_login(root)
    content = client.get(page("change", task.pk)).content.decode()
    assert 'name="_save"' not in content
    assert 'name="status"' not in content
    assert "<textarea" not in content


def test_attempts_cannot_be_posted(client, root, task):
    client.force_login(root)
    fields = {"attempts-TOTAL_FORMS": "1", "attempts-INITIAL_FORMS": "0", "attempts-0-run": "0"}
    assert client.post(page("change", task.pk), fields).status_code == 403
    assert not TaskAttempt.objects.exists()


def test_the_dispatcher_status_is_read_only(client, root):
    DispatcherStatus.record_start()
    client.force_login(root)
    assert client.get(page("add", model="dispatcherstatus")).status_code == 403
    change = page("change", 1, model="dispatcherstatus")
    assert client.get(change).status_code == 200
    assert client.post(change, {"last_error": "x"}).status_code == 403
    assert client.post(page("delete", 1, model="dispatcherstatus")).status_code == 403
    assert DispatcherStatus.current().last_error == ""


def test_people_who_are_no_staff_are_sent_to_the_login(client, alice, task):
    client.force_login(alice)
    for url in (page("changelist"), page("change", task.pk)):
        response = client.get(url)
        assert response.status_code == 302
        assert reverse("admin:login") in response["Location"]


def test_staff_without_the_permission_see_nothing(client, make_staff, task):
    client.force_login(make_staff("nora"))
    for url in (page("changelist"), page("change", task.pk)):
        assert client.get(url).status_code == 403
