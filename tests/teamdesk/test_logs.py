"""Every log line says what it is about, as a line for people or an object for programs."""

import contextlib
import json
import logging
import re
import urllib.error
import urllib.request

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from tasks import correlation
from tasks.models import BackgroundTask
from teamdesk import environment
from tests.tasks import kinds as _tasks_kinds  # noqa: F401  registers them
from tests.teamdesk import kinds  # noqa: F401  likewise

enqueue = BackgroundTask.objects.enqueue

UTC_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def objects(stream) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_readable_and_in_utc(written):
    stream = written("line")
    logging.getLogger("some.library").warning("the %s is on fire", "printer")
    assert re.fullmatch(
        UTC_TIME + r" WARNING some\.library: the printer is on fire\n", stream.getvalue()
    )


def test_an_object_is_one_line_and_in_utc(written):
    stream = written("json")
    try:
        raise ConnectionError("two\nlines")
    except ConnectionError:
        logging.getLogger("some.library").exception("käse", extra={"path": {1, 2}})
    (found,) = objects(stream)
    assert re.fullmatch(UTC_TIME, found["time"])
    assert (found["level"], found["logger"], found["message"]) == ("ERROR", "some.library", "käse")
    assert "ConnectionError: two\nlines" in found["exc_info"]
    assert found["path"] == "{1, 2}"


def test_a_traceback_follows_its_line(written):
    stream = written("line")
    try:
        raise ConnectionError("gone")
    except ConnectionError:
        logging.getLogger("x").exception("It failed")
    assert re.search(r"ERROR x: It failed\nTraceback", stream.getvalue())


@pytest.mark.django_db
def test_a_web_line_says_which_request_and_who(written, client, alice):
    stream = written("json")
    client.force_login(alice)
    client.get("/tickets/999999/", headers={"X-Request-ID": "proxy-4711"})
    client.get("/healthz")
    (found,) = [each for each in objects(stream) if "Not Found" in each["message"]]
    assert found["request_id"] == "proxy-4711"
    assert found["user_id"] == alice.pk
    assert "request" not in found
    assert correlation.user_id.get() is None


@pytest.mark.django_db
def test_a_line_that_django_writes_after_all_middleware_says_it_too(written, client):
    stream = written("json")
    client.get("/readyz", headers={"X-Request-ID": "proxy-4711"})  # 503: no round yet
    (found,) = [each for each in objects(stream) if "Service Unavailable" in each["message"]]
    assert found["request_id"] == "proxy-4711"


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_web_process_says_everything_once_and_in_one_form(processes, wait_until):
    """gunicorn's own lines too, and Django's, which has handlers of its own."""
    web, address = processes.web(TEAMDESK_LOG_FORMAT="json", DEBUG="True")
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{address}/readyz", timeout=20)
    wait_until(lambda: "Service Unavailable" in web.output)
    lines = [json.loads(line) for line in web.output.splitlines()]
    assert sum("Service Unavailable" in line["message"] for line in lines) == 1
    assert "gunicorn.error" in {line["logger"] for line in lines}


def test_an_unknown_form_is_refused(monkeypatch):
    monkeypatch.setenv("TEAMDESK_LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match="TEAMDESK_LOG_FORMAT='xml' is none of"):
        environment.choice("TEAMDESK_LOG_FORMAT", "line", ["line", "json"])
    assert settings.LOGGING["handlers"]["console"]["formatter"] == "line"
