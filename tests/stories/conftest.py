import pytest
import requests

from tests.tasks.conftest import _notes_table, notes  # noqa: F401  fixtures


@pytest.fixture(autouse=True)
def _fast_passwords():
    """Not here: the web process checks passwords with the real hasher."""


class Visitor(requests.Session):
    """Someone logged in to the real web process, as a program sees it."""

    def __init__(self, address: str, name: str, password: str = "secret"):
        super().__init__()
        self.address = address
        page = self.see("/accounts/login/")
        assert page.status_code == 200, page.text
        self.submit("/accounts/login/", username=name, password=password)
        assert "sessionid" in self.cookies, "the log-in was refused"

    def see(self, path: str, **options) -> requests.Response:
        return self.get(self.address + path, timeout=60, **options)

    def submit(self, path: str, as_json: bool = False, **fields) -> requests.Response:
        """POST a form; redirects are not followed."""
        headers = {"X-CSRFToken": self.cookies["csrftoken"], "Referer": self.address}
        if as_json:
            headers["Accept"] = "application/json"
        return self.post(
            self.address + path, data=fields, headers=headers, timeout=60, allow_redirects=False
        )

    def ask(self, path: str) -> dict:
        return self.see(path, headers={"Accept": "application/json"}).json()


@pytest.fixture
def visitor():
    return Visitor
