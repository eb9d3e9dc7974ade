"""Every frame of a link takes so many milliseconds more, each way.

A grant is old when it comes: the broker's lease counts from the request, the client's from the answer, and the
difference is time in which two may believe to own a lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import number_of, took_longer
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
    ms = number_of(fault)
    return took_longer(rows, fault, ms * 1000) if ms else None
