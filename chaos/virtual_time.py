"""An event loop whose time is a simulated cluster's: to wait is to let that much happen there.

What is written for real time, as the steps of a plan, goes on in it without a change and without waiting. The time is
the cluster's, in whole milliseconds, so that the same plan waits for the same moments everywhere.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from specs.errors import InorderError


class NothingIsDue(InorderError):
    """Everybody waits for somebody else: exit 70."""


class _Passing(selectors.SelectSelector):
    """Nothing comes from outside: a wait with a limit lets that much time pass, and ends."""

    def __init__(self, now_ms: Callable[[], int], run_until: Callable[[int], Any]) -> None:
        super().__init__()
        self._now_ms = now_ms
        self._run_until = run_until

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if timeout is None and not found:
            raise NothingIsDue("nothing is due in a simulated run, and something is waited for")
        if not found and timeout:
            self._run_until(self._now_ms() + max(1, round(timeout * 1000)))
        return found


class VirtualTime(asyncio.SelectorEventLoop):
    """now_ms, run_until: those of the cluster."""

    def __init__(self, now_ms: Callable[[], int], run_until: Callable[[int], Any]) -> None:
        self._now_ms = now_ms
        super().__init__(_Passing(now_ms, run_until))
        # A timer is due in its millisecond, whatever is left of it in a float.
        self._clock_resolution = 0.0005

    def time(self) -> float:
        return self._now_ms() / 1000
