"""Every frame of a link takes so many milliseconds more, each way.

A grant is old when it comes: the broker's lease counts from the request, the client's from the answer, and the
difference is time in which two may believe to own a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from specs.history.evidence import QUICK, asked_during, names_of, number_of, over_link
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "delay"
RANK = 70
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "ms": ("integer", True)}
NEEDS = Ability.BREAK_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LATER
TWIN = {"ms": 0}
SAYS = (
    Saying(
        "link NODE OTHER takes MS ms",
        "Every frame between the two takes that long, each way.",
        {"a": "NODE", "b": "OTHER", "ms": "MS"},
    ),
)
ALSO = ("latency",)
DRAWN = Drawn()


def inject(rig: Rig, a: str, b: str, ms: int) -> None:
    rig.trouble(Trouble.DELAY, a, b, ms)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests that a broker answers at once took so much longer than before, in the median."""
    names, ms = names_of(fault), number_of(fault)
    slow = [_took_us(row) for row in asked_during(rows, fault) if _is_quick(row)]
    usual = [
        _took_us(row)
        for row in rows
        if _is_quick(row) and over_link(row, names) and (row.ended_us or 0) < fault.started_us
    ]
    if not ms or not slow:
        return None
    before_us = median(usual) if usual else 0
    if median(slow) - before_us < ms * 1000:
        return None
    return (
        f"the median request took {median(slow) / 1000:.0f} ms instead of {before_us / 1000:.1f} ms"
    )


def _is_quick(row: Row) -> bool:
    return row.kind in QUICK and row.ended_us is not None


def _took_us(row: Row) -> int:
    return (row.ended_us or row.started_us) - row.started_us
