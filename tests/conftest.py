"""The cast and the small tools of every test.

alice, lead of the support team, opened the ticket; bob is an agent in her team, vera only views;
charlie is an agent of another team, an outsider; root is a superuser.
"""

import time

import pytest

from tests import services
from tests.chromium import browser_executable, chromium  # noqa: F401  fixtures
from tests.concurrency import actor  # noqa: F401  a fixture
from tests.processes import processes  # noqa: F401  a fixture


@pytest.fixture(autouse=True)
def _fast_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _english():
    """A request leaves its language active in the thread; the next test starts in English."""
    from django.utils import translation

    with translation.override("en"):
        yield


@pytest.fixture(autouse=True)
def empty_queue():
    """Every test starts with an empty Redis."""
    from tasks import queue

    client = services.redis_client()
    client.flushall()
    queue.forgetting_rests.end()  # what another test's silent Redis taught
    yield client
    client.close()


@pytest.fixture
def wait_until():
    """``wait_until(condition, "what", seconds)``: returns the condition's first true value."""

    def wait(condition, what="the condition", seconds=30.0):
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                pytest.fail(f"Not within {seconds:.0f} s: {what}")
            time.sleep(0.02)  # between looks, not for a fixed time

    return wait


def _person(name, **fields):
    from tickets.models import User

    return User.objects.create_user(name, f"{name}@example.org", "secret", **fields)


@pytest.fixture
def support(db):
    from tickets.models import Team

    return Team.objects.create(name="Support", slug="support")


@pytest.fixture
def billing(db):
    from tickets.models import Team

    return Team.objects.create(name="Billing", slug="billing")


@pytest.fixture
def alice(support):
    user = _person("alice", first_name="Alice", last_name="Ames")
    support.memberships.create(user=user, role="lead")
    return user


@pytest.fixture
def bob(support):
    user = _person("bob", first_name="Bob", last_name="Berg")
    support.memberships.create(user=user, role="agent")
    return user


@pytest.fixture
def vera(support):
    user = _person("vera", first_name="Vera", last_name="Vogel")
    support.memberships.create(user=user, role="viewer")
    return user


@pytest.fixture
def charlie(billing):
    user = _person("charlie", first_name="Charlie", last_name="Chen")
    billing.memberships.create(user=user, role="agent")
    return user


@pytest.fixture
def root(db):
    return _person("root", is_staff=True, is_superuser=True)
