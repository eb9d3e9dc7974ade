"""Waiting in real time: the one place of the conformance and chaos packages that sleeps.

Waiting is always for a condition, with a deadline; only where the passing of time itself is the input (a lease
that is to run out) is time simply let pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.01


def now_s() -> float:
    """Seconds on the host's monotonic clock."""
    return time.monotonic()


def wait_until(
    condition: Callable[[], bool], deadline_s: float = 3.0, poll_s: float = POLL_S
) -> bool:
    """Ask again and again until the condition holds; False when the deadline passed first."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll_s)
    return True


def pass_time(seconds: float) -> None:
    """Let time pass, as an input of the system under test."""
    time.sleep(max(seconds, 0.0))
