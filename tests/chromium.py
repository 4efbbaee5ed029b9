"""Where the browser of the browser tests is. A machine without one says so; CI must have one."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


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
