"""A party's wall clock jumps, by which leases are measured.

An operator or a time service sets it. Forward, a lease runs out before its time; back, it seems to last for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import is_of, names_of, number_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind, Outcome

VERB = "clock_step"
RANK = 120
SUBJECT = Subject.PROCESS
ARGS = {"node": (NODE, True), "ms": ("integer", True)}
NEEDS = Ability.STEP_CLOCK
NEEDS_OF_BROKER = Ability.STEP_BROKER_CLOCK
HEALED_BY = None
REQUESTS = Requests.SPARES
TWIN = {"ms": 0}
_MS = 1000
_BEFALLS = frozenset({Kind.FAULT, Kind.CLOCK_STEP, Kind.PAUSE, Kind.CRASH, Kind.JOIN, Kind.LEAVE})
"""What a harness writes down of a party, by a clock that nobody stepped."""
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
    """The party's rows before and after, or the times at which a broker says that it stored messages: its wall clock
    went on by another time than the one in between.
    """
    if number_of(fault) == 0:
        return None
    for node in names_of(fault):
        shown = _by_own_rows(rows, fault, node) or _by_stored(rows, fault, node)
        if shown is not None:
            return shown
    return None


def _by_own_rows(rows: Sequence[Row], fault: Row, node: str) -> str | None:
    """Of a party that writes down what it does."""
    mine = [
        row
        for row in rows
        if is_of(row, node) and row.wall_us is not None and row.kind not in _BEFALLS
    ]
    before = [row for row in mine if row.started_us <= fault.started_us]
    after = [row for row in mine if row.started_us > _end_us(fault)]
    if not before or not after:
        return None
    stepped_us = _offset_us(after[0]) - _offset_us(before[-1])
    # The two clocks of a row are read one after the other.
    least_us = abs(number_of(fault) or 0) * _MS // 2
    return _told(node, stepped_us) if abs(stepped_us) > least_us else None


def _by_stored(rows: Sequence[Row], fault: Row, node: str) -> str | None:
    """Of a broker: each message that is read back carries its time, which lies within the send that stored it.

    A dead letter has its message's name, and a time of its own: what counts is what lies where the send says.
    Before the fault, since the last step, and after it, until the next one, these sends leave so much room for how far
    the broker's clock is ahead; where there is none for both it was stepped.
    """
    stored_us = {
        _place(row): row.wall_us for row in rows if row.kind is Kind.READ and row.broker == node
    }
    steps = [row for row in rows if row.kind is Kind.CLOCK_STEP and row.broker == node]
    since = max((row.started_us for row in steps if row.started_us < fault.started_us), default=-1)
    ends_us = _end_us(fault)
    until = min((row.started_us for row in steps if row.started_us > ends_us), default=None)
    before, after = _Ahead(), _Ahead()
    for row in rows:
        stored = stored_us.get(_place(row))
        if row.kind is not Kind.SEND or row.outcome is not Outcome.OK or row.broker != node:
            continue
        if stored is None or row.ended_us is None:
            continue
        if since < row.started_us and row.ended_us < fault.started_us:
            before.take(row.started_us, row.ended_us, stored)
        elif row.started_us > ends_us and (until is None or row.ended_us < until):
            after.take(row.started_us, row.ended_us, stored)
    return before.told(after, node)


class _Ahead:
    """How far a broker's wall clock is ahead of the monotonic one, at least and at most."""

    def __init__(self) -> None:
        self.least_us: int | None = None
        self.most_us: int | None = None

    def take(self, begun_us: int, ended_us: int, stored_us: int) -> None:
        """A message's time is in whole ms, and so up to one earlier than the clock was."""
        least, most = stored_us - ended_us, stored_us + _MS - begun_us
        self.least_us = least if self.least_us is None else max(self.least_us, least)
        self.most_us = most if self.most_us is None else min(self.most_us, most)

    def told(self, after: _Ahead, node: str) -> str | None:
        """By how much it was stepped from here to there, if it was for certain."""
        if self.least_us is None or self.most_us is None:
            return None
        if after.least_us is None or after.most_us is None:
            return None
        least_us, most_us = after.least_us - self.most_us, after.most_us - self.least_us
        # Bounds that contradict each other tell of another clock, or of another step.
        if least_us <= 0 <= most_us or least_us > most_us:
            return None
        return f"{_told(node, least_us)} to {most_us / _MS:.0f} ms, by the times of what it stored"


def _place(row: Row) -> tuple[object, ...]:
    return (row.message_id, row.topic, row.queue_id, row.queue_offset)


def _told(node: str, stepped_us: int) -> str:
    return f"the clock of {node} stepped by {stepped_us / _MS:.0f} ms"


def _end_us(fault: Row) -> int:
    """By then it is done."""
    return fault.started_us if fault.ended_us is None else fault.ended_us


def _offset_us(row: Row) -> int:
    return (row.wall_us or 0) - row.started_us
