import pytest

from tasks.models import BackgroundTask, TaskStatus
from tasks.worker import run_job
from tickets.models import MailDelivery, Ticket

from .server import SmtpServer


@pytest.fixture
def mail_through(settings):
    """``mail_through(server)``: mail leaves through that server, to which answers come soon."""

    def use(server, **more):
        settings.EMAIL_BACKEND = "tickets.mail.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        for name, value in more.items():
            setattr(settings, name, value)
        return server

    return use


@pytest.fixture
def smtp(mail_through):
    """A real SMTP server that mail leaves through."""
    server = SmtpServer()
    yield mail_through(server)
    server.stop()


@pytest.fixture
def assigned(alice, bob, support):
    """A ticket of alice's that was just assigned to bob, who is to be told."""
    return Ticket.objects.open(by=alice, team=support, subject="Printer", assignee=bob)


@pytest.fixture
def delivery(assigned) -> MailDelivery:
    return MailDelivery.objects.get()


@pytest.fixture
def run():
    """``run(delivery)``: one attempt of its task. Returns the task's status after it."""

    def run(delivery) -> TaskStatus | None:
        task = BackgroundTask.objects.get(mail_delivery=delivery)
        status = run_job(task.pk, task.run)
        delivery.refresh_from_db()
        delivery.task.refresh_from_db()
        return status

    return run
