"""A pause after a failure, where trying on would make everybody wait for nothing."""

import time


class Rest:
    """After a failure, no tries for a while: of all threads, or each would learn it slowly."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.end()

    @property
    def is_on(self) -> bool:
        return time.monotonic() < self._until

    def begin(self) -> None:
        self._until = time.monotonic() + self.seconds

    def end(self) -> None:
        self._until = 0.0
