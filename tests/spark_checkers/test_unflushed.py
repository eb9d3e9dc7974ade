"""What a broker may lose that has said it flushes later: an interval (500 ms), a timer's slack (1 s), a sync (5 s)."""

from __future__ import annotations

import pytest
from judging import by_columns, in_memory

from spark_checkers.catalogue import all_judges
from specs.clauses.catalogue import all_clauses, get
from specs.clauses.premises import NOTHING_TAKEN_BACK
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.plan.config import FLUSHES, Config
from specs.verdicts.examine import find_violations

LOST = """
    0ms..5ms        shop   sends    orders/b0/3   offset=17 id=m17 ok
    {crash}
    9000ms..9009ms  drain  reads    orders/b0/3   value=17 ok
"""
REPLACED = """
    0ms..5ms        shop   sends    orders/b0/3   offset=17 id=m17 ok
    {crash}
    9000ms..9009ms  drain  reads    orders/b0/3   value=18 ok
    9005ms          drain  reads    orders/b0/3   offset=17 id=m18 ok
"""
EXAMPLES = {
    "within the interval and the slack": (0, "async", "1504ms  b0  crashes  b0"),
    "at their very end it has to be there": (1, "async", "1505ms  b0  crashes  b0"),
    "the answer arrives after the crash": (0, "async", "4ms  b0  crashes  b0"),
    "the crash of another broker is none": (1, "async", "1000ms  b1  crashes  b1"),
    "the death of a client is none": (1, "async", "1000ms  eve  crashes  -"),
    "a broker that says it flushes at once": (1, "sync", "6ms  b0  crashes  b0"),
    "a store that a crash leaves alone": (1, "memory", "6ms  b0  crashes  b0"),
    "a crash after the message was missed": (1, "async", "9500ms  b0  crashes  b0"),
    "a broker that stands still does not flush": (
        0,
        "async",
        "200ms..4000ms  b0  pauses  b0\n    4500ms  b0  crashes  b0",
    ),
    "and flushes when it goes on": (
        1,
        "async",
        "200ms..4000ms  b0  pauses  b0\n    5305ms  b0  crashes  b0",
    ),
    "of two pauses both count": (
        0,
        "async",
        "200ms..2000ms  b0  pauses  b0\n    2500ms..7000ms  b0  pauses  b0\n    7500ms  b0  crashes  b0",
    ),
    "a pause long before it does not": (
        1,
        "async",
        "200ms..300ms  b0  pauses  b0\n    7500ms  b0  crashes  b0",
    ),
}


@pytest.mark.parametrize("text", [LOST, REPLACED], ids=["gone", "another in its place"])
@pytest.mark.parametrize(("violations", "flush", "crash"), EXAMPLES.values(), ids=list(EXAMPLES))
def test_example(violations: int, flush: str, crash: str, text: str) -> None:
    """Both judges say the same, of disks that sync at once."""
    _judged(violations, f"flush={flush} disk_slack_ms=0", text, crash)


@pytest.mark.parametrize("text", [LOST, REPLACED], ids=["gone", "another in its place"])
@pytest.mark.parametrize(("violations", "at_ms"), [(0, 6504), (1, 6505)])
def test_a_sync_takes_time_on_a_real_disk(violations: int, at_ms: int, text: str) -> None:
    """As long as RocketMQ itself gives it (syncFlushTimeout)."""
    _judged(violations, "flush=async", text, f"{at_ms}ms  b0  crashes  b0")


def _judged(violations: int, config: str, text: str, crash: str) -> None:
    lines = sorted(
        text.format(crash=crash).strip().splitlines(), key=lambda line: float(line.split("ms")[0])
    )
    info, rows = parse_history("\n".join((f"config {config}", *lines)))
    assert len(find_violations(get("SND-1"), rows, info)) == violations
    assert by_columns(rows, info, all_judges()) == in_memory(rows, info, all_clauses())


@pytest.mark.parametrize("clause", ["ORD-12", "DLQ-1", "SND-6", "LIV-1"])
def test_what_a_crash_may_take_back_is_promised_by_those_who_flush_first(clause: str) -> None:
    """Consumers have seen it, and its offsets are given to other messages, which they pass by."""
    unmet = {
        flush: get(clause).unmet(RunInfo("run", settles=True, config=Config(flush=flush)))
        for flush in FLUSHES
    }
    assert unmet == {"memory": None, "sync": None, "async": NOTHING_TAKEN_BACK}
