"""A wall clock of one process alone can be set while it runs; its monotonic clock goes on as before."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.parts import wall_clock
from conformance.parts.preload import environment_of
from conformance.parts.wall_clock import WallClock

WHY_NOT = wall_clock.why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
SAYS = """
import sys, time
for _ in sys.stdin:
    print(time.time_ns(), time.monotonic_ns(), flush=True)
"""
NS = 1_000_000_000
HOUR_MS = 3_600_000


@contextmanager
def asked(clock: WallClock) -> Iterator[subprocess.Popen[str]]:
    """A process that says what its clocks show when it is sent a line."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SAYS],
        env={**os.environ, **environment_of(clock.told)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def ahead_s(process: subprocess.Popen[str]) -> tuple[int, int]:
    """How far its wall clock and its monotonic one are ahead of ours, to the next quarter of an hour."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    wall, monotonic = map(int, process.stdout.readline().split())
    quarter = 900 * NS
    return (
        round((wall - time.time_ns()) / quarter) * 900,
        round((monotonic - time.monotonic_ns()) / quarter) * 900,
    )


def test_a_step_is_there_with_the_next_look_and_steps_add_up(tmp_path: Path) -> None:
    clock = WallClock(tmp_path)
    with asked(clock) as process:
        shown = [ahead_s(process)]
        for ms in (2 * HOUR_MS, -3 * HOUR_MS):
            clock.step(ms)
            shown.append(ahead_s(process))
    clock.close()
    assert shown == [(0, 0), (7_200, 0), (-3_600, 0)]


def test_two_processes_have_two_clocks(tmp_path: Path) -> None:
    mine, hers = WallClock(tmp_path), WallClock(tmp_path)
    mine.step(HOUR_MS)
    with asked(mine) as first, asked(hers) as second:
        assert (ahead_s(first)[0], ahead_s(second)[0]) == (3_600, 0)
    mine.close()
    hers.close()
