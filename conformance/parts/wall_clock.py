"""A wall clock of one process alone, which can be set while it runs.

    clock = WallClock(folder)
    process = Process("broker", ["java", ...], log=log, env=environment_of(clock.told))
    clock.step(1_500)                         # from now on it shows 1.5 s more, to this process and its children

A small library (`preload`, `wall_clock.c`) adds a number to what the machine's wall clock shows, so a step is there
with the next look at the clock. Monotonic clocks and timers are untouched, as when a time service sets a clock. Where
a program waits until a time of day, the kernel waits for its own.
"""

from __future__ import annotations

from pathlib import Path

from conformance.parts.preload import Library, Told, said_by
from specs.errors import Unavailable

_MS = 1_000_000
_TRIED_MS = 3_600_000
_CLOCKS = "import time; print(time.time_ns(), time.monotonic_ns())"


class WallClock:
    """folder: for its file. Raises Unavailable where no such clock can be had (`why_not`)."""

    def __init__(self, folder: Path) -> None:
        if (why := why_not()) is not None:
            raise Unavailable(f"a wall clock can't be set here: {why}")
        self.told = Told(LIBRARY, folder)

    def step(self, ms: int) -> None:
        """Set it by so much, forwards or (negative) backwards."""
        self.told.put(0, self.told.get(0) + ms * _MS)

    def close(self) -> None:
        """Nobody sets it any more. A second call does nothing."""
        self.told.close()


def why_not() -> str | None:
    """Why no such clock can be had on this machine, and what mends it; None where it can. Tried once."""
    return LIBRARY.why_not()


def _works(told: Told) -> bool:
    """Does a process see a wall clock that was set, and a monotonic one that was not?"""
    told.put(0, _TRIED_MS * _MS)
    shown, here = said_by(_CLOCKS, told), said_by(_CLOCKS)
    if len(shown) != len(here):
        return False
    wall, monotonic = (int(theirs) - int(ours) for theirs, ours in zip(shown, here, strict=True))
    half = _TRIED_MS * _MS // 2
    return wall > half > abs(monotonic)


LIBRARY = Library(
    "wall-clock", Path(__file__).with_name("wall_clock.c"), "INORDER_WALL_CLOCK", _works
)
