"""Virtual time: a heap of calls that are due, in whole milliseconds.

Calls due in the same millisecond happen in the order in which they were asked for, so that a run depends on
nothing but its plan.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

EPOCH_MS = 1_700_000_000_000
"""What all wall clocks say when a run begins (ms since the epoch)."""


class Timeline:
    """now_ms: ms since the run began. events: how many calls were made."""

    __slots__ = ("_heap", "_serial", "events", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._serial = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def now_us(self) -> int:
        """The run's monotonic clock, in µs."""
        return self.now_ms * 1000

    def after(self, delay_ms: int, call: Callable[..., None], *args: Any) -> int:
        """Call in so many ms (0: still in this one, after what is being done). A number unique in the run."""
        return self.at(self.now_ms + delay_ms if delay_ms > 0 else self.now_ms, call, *args)

    def at(self, at_ms: int, call: Callable[..., None], *args: Any) -> int:
        self._serial = serial = self._serial + 1
        heapq.heappush(self._heap, (at_ms, serial, call, args))
        return serial

    def run_until(self, at_ms: int) -> None:
        """Do everything that is due up to and at that time; then it is that time."""
        heap, pop = self._heap, heapq.heappop
        count = 0
        while heap and heap[0][0] <= at_ms:
            due_ms, _, call, args = pop(heap)
            self.now_ms = due_ms
            call(*args)
            count += 1
        self.events += count
        if at_ms > self.now_ms:
            self.now_ms = at_ms
