"""Development's mail: files that mail programs open."""

import email
import email.policy

import pytest
from django.core.mail import EmailMessage, get_connection

from tasks.models import TaskStatus

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(settings, tmp_path):
    settings.EMAIL_BACKEND = "tickets.mail.files.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    return tmp_path / "mail"


def test_each_mail_is_one_file(folder, delivery, run):
    assert run(delivery) == TaskStatus.COMPLETED
    assert (delivery.status, delivery.answer) == ("sent", "kept")
    [path] = folder.iterdir()
    assert path.name.endswith(".eml") and "bob@example.org" in path.name
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert message["Message-ID"] == delivery.message_id
    assert "Printer" in message.get_body(("html",)).get_content()


def test_no_address_leads_out_of_the_folder(folder):
    get_connection().send_messages(
        [EmailMessage("Hello", "x", "a@example.org", [f"../{'x' * 300}/etc@example.org"])] * 2
    )
    assert len(list(folder.iterdir())) == 2


def test_a_mail_that_cannot_be_written_leaves_no_half(folder, delivery, run, monkeypatch):
    monkeypatch.setattr("tickets.mail.files.Path.rename", _refuse)
    assert run(delivery) == TaskStatus.WAITING
    assert "No space left" in delivery.reason
    assert list(folder.iterdir()) == []


def _refuse(*args):
    raise OSError("No space left on device")
