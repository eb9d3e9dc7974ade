"""A party's wall clock jumps, by which leases are measured.

An operator or a time service sets it. Forward, a lease runs out before its time; back, it seems to last for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import is_of, names_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind

VERB = "clock_step"
RANK = 120
SUBJECT = Subject.PROCESS
ARGS = {"node": (NODE, True), "ms": ("integer", True)}
NEEDS = Ability.STEP_CLOCK
HEALED_BY = None
REQUESTS = Requests.SPARES
TWIN = {"ms": 0}
SAYS = (
    Saying(
        "clock of NODE steps STEP ms",
        "A wall clock jumps, by which leases are measured.",
        {"node": "NODE", "ms": "STEP"},
    ),
)


def inject(rig: Rig, node: str, ms: int) -> None:
    rig.step_clock(node, ms)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """The party's rows before and after: their wall clocks differ by more than the time in between."""
    for node in names_of(fault):
        mine = [row for row in rows if is_of(row, node) and row.wall_us is not None]
        before = [row for row in mine if row.started_us <= fault.started_us]
        after = [
            row for row in mine if row.started_us > fault.started_us and row.kind is not Kind.FAULT
        ]
        if before and after:
            stepped_us = _offset_us(after[0]) - _offset_us(before[-1])
            if stepped_us:
                return f"the clock of {node} stepped by {stepped_us / 1000:.0f} ms"
    return None


def _offset_us(row: Row) -> int:
    return (row.wall_us or 0) - row.started_us
