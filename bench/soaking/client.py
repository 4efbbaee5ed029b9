"""A person at the real web, as a program: log-in, session, CSRF. Nothing is ever sent twice."""

import contextlib
import re
import threading
from enum import StrEnum

import requests


class Answer(StrEnum):
    """What the client knows of a request. Only ``ACCEPTED`` binds the system."""

    ACCEPTED = "accepted"
    REFUSED = "refused"  # certainly not done
    UNKNOWN = "unknown"  # the answer was lost: it may have been done or not


class Client(requests.Session):
    def __init__(self, address: str, name: str, password: str):
        super().__init__()
        self.address = address
        self.name = name
        self.password = password

    def log_in(self, closing: threading.Event) -> None:
        """Until it succeeded, or ``closing`` is set."""
        while not closing.is_set():
            with contextlib.suppress(requests.RequestException):
                self.see("/accounts/login/")
                if "csrftoken" in self.cookies:
                    self.submit("/accounts/login/", username=self.name, password=self.password)
                if "sessionid" in self.cookies:
                    return
            closing.wait(0.5)

    def see(self, path: str, **options) -> requests.Response:
        return self.get(self.address + path, timeout=30, **options)

    def submit(self, path: str, as_json: bool = False, **fields) -> requests.Response:
        """POST a form; redirects are not followed."""
        headers = {"X-CSRFToken": self.cookies["csrftoken"]}
        if as_json:
            headers["Accept"] = "application/json"
        return self.post(
            self.address + path, data=fields, headers=headers, timeout=30, allow_redirects=False
        )

    def order(self, path: str, expected: str, **fields) -> tuple[Answer, str]:
        """Submit a form whose success is a redirect to what ``expected``, a pattern with one group,
        matches. Returns the answer and the group.

        A server error is no refusal: the work may have been committed before it.
        """
        try:
            response = self.submit(path, **fields)
        except requests.RequestException:
            return Answer.UNKNOWN, ""
        if response.status_code >= 500:
            return Answer.UNKNOWN, ""
        found = re.fullmatch(expected, response.headers.get("Location", ""))
        return (Answer.ACCEPTED, found[1]) if found else (Answer.REFUSED, response.text[:500])

    def order_json(self, path: str, **fields) -> tuple[Answer, dict]:
        """Likewise for programs: 200 and 202 are successes. Returns the answer and its object."""
        try:
            response = self.submit(path, as_json=True, **fields)
            if response.status_code >= 500:
                return Answer.UNKNOWN, {}
            if response.status_code in (200, 202):
                return Answer.ACCEPTED, response.json()
        except (requests.RequestException, ValueError):
            return Answer.UNKNOWN, {}
        return Answer.REFUSED, {"error": response.text[:500]}
