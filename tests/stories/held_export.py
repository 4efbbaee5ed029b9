"""For a real worker to load: its exports stand still after a chunk until HELD_UNTIL exists."""

import os
import time
from pathlib import Path

from exports.models.chunk import ExportChunkQuerySet

UNTIL = Path(os.environ["HELD_UNTIL"])
_store = ExportChunkQuerySet.store


def _store_the_first_alone(self, export, execution_id, first_byte, data):
    while first_byte and not UNTIL.exists():
        time.sleep(0.02)
    _store(self, export, execution_id, first_byte, data)


ExportChunkQuerySet.store = _store_the_first_alone
