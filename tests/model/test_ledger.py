"""The ledger does what its model says, whatever happens in whichever order."""

import pytest

from tests.model import machine, world


@pytest.mark.timeout(0)  # the deep profile takes as long as it is told to
def test_the_ledger_keeps_its_promises(transactional_db):
    with world.arranged():
        machine.play()
