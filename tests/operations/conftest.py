"""The fixtures of the operations pages: staff and tasks as in the admin's tests, a browser."""

from tests.admin.conftest import (  # noqa: F401
    _a_kind,
    make_staff,
    make_task,
    observer,
    operator,
    ticket,
    told,
)
from tests.browser.conftest import open_page  # noqa: F401
from tests.operations.ledger import attempt, busy_ledger  # noqa: F401
