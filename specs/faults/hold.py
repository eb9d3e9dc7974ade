"""A link is held: nothing comes through, and nobody is told; the connections live for a while.

What was sent arrives all at once when the link is well again, after its sender has given it up: a renewal of a lease
that another has by then, a commit of what was since taken over.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import IN_VAIN, asked_during, under_way
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Subject
from specs.plan.rig import Rig, Trouble

VERB = "hold"
RANK = 60
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True)}
NEEDS = Ability.BREAK_LINK
HEALED_BY = "heal"
REQUESTS = Requests.HOLDS
SAYS = ()
DRAWN = Drawn()

LASTED_US = 100_000
"""A link that was held for a shorter time held nobody back for certain."""


def inject(rig: Rig, a: str, b: str) -> None:
    rig.trouble(Trouble.HOLD, a, b)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests over the link that were answered after its end, or in vain; also those that already waited for their
    answer when it began, if it lasted: who asks one thing after the other asks for nothing more.
    """
    ends_us = fault.ended_us if fault.ended_us is not None else fault.started_us
    asked = asked_during(rows, fault)
    if ends_us - fault.started_us >= LASTED_US:
        asked += [row for row in under_way(rows, fault) if _outlasts(row, ends_us)]
    held = [row for row in asked if row.outcome in IN_VAIN or _outlasts(row, ends_us)]
    if not held:
        return None
    return (
        f"{len(held)} of {len(asked)} requests were held until the link was well again, or in vain"
    )


def _outlasts(row: Row, ends_us: int) -> bool:
    return row.ended_us is None or row.ended_us >= ends_us
