"""The browser of the browser tests. A machine without one says so; CI must have one."""

import os
import shutil

import pytest
from django.db import connections
from playwright.sync_api import expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def browser_executable() -> str:
    """The path of Chromium or Chrome; without one the test is skipped, with CI=true it fails."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found:
        return found
    reason = "No Chromium is installed; bin/test installs it when run as root on Debian."
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def chromium(browser_executable):
    """A running browser; tests open contexts in it, each a fresh profile."""
    with pytest.MonkeyPatch.context() as patch:
        # Playwright's loop lives in this thread; the ORM is used between its calls, not in them.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=browser_executable,
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            )
            yield browser
            browser.close()
            # Inside Playwright's loop this thread has a database connection of its own, which
            # would keep the test database from being dropped.
            connections.close_all()
