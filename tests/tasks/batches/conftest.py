import pytest

from tasks import batch, registry
from tasks.registry import Kind
from tests.tasks.batches.ledger import enqueue


@pytest.fixture
def three(notes):
    return [enqueue() for _ in range(3)]


@pytest.fixture
def groups(monkeypatch):
    """The sizes of the groups that are completed in one transaction, each when it is tried."""
    monkeypatch.setattr(batch, "_GROUP_AFTER_SECONDS", 600)  # however slow this machine is
    sizes, original = [], batch.complete_together

    def counted(finished):
        sizes.append(len(finished))
        return original(finished)

    monkeypatch.setattr(batch, "complete_together", counted)
    return sizes


@pytest.fixture
def handler(monkeypatch):
    """``handler(function, **policy)``: what kind QUICK_NOTE does in this test."""

    def install(function, **policy):
        kind = Kind("QUICK_NOTE", function, **{"batch": 10, "ladder": (60, 300)} | policy)
        monkeypatch.setitem(registry._kinds, "QUICK_NOTE", kind)

    return install
