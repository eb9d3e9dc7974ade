"""The recorder's clocks: the one module of `specs` that asks the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecorderClock:
    """A clock domain. monotonic_us and wall_us answer in µs; name goes into the `clock` column."""

    name: str
    monotonic_us: Callable[[], int]
    wall_us: Callable[[], int]


def host_clock() -> RecorderClock:
    """This machine's clocks. All processes and containers of one host share its monotonic clock."""
    return RecorderClock(
        "host", lambda: time.monotonic_ns() // 1000, lambda: time.time_ns() // 1000
    )
