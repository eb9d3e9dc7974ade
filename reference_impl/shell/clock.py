"""The real clocks. No other module of the reference imports `time`."""

from __future__ import annotations

import time


def monotonic_s() -> float:
    """Seconds on the host's monotonic clock: for deadlines."""
    return time.monotonic()


class WallClock:
    """A node's wall clock in ms since the epoch. It can be made wrong, for one node alone.

    A lease is measured by wall clocks, so a step of this clock reaches the core; timers do not notice it.
    """

    def __init__(self, offset_ms: int = 0) -> None:
        self._offset_ms = offset_ms

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._offset_ms

    def step(self, by_ms: int) -> None:
        """Jump, forwards or (negative) backwards."""
        self._offset_ms += by_ms
