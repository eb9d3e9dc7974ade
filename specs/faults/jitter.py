"""Every frame of a link takes up to so many milliseconds more, each way, and none overtakes another.

As on a mobile line or a crowded one. A renewal that is sent in time comes too late, and the next one right behind it:
who measures one round trip and counts on it for the next is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import number_of, quick_during, took_longer
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "jitter"
RANK = 72
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "ms": ("integer", True)}
NEEDS = Ability.SHAPE_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LATER
TWIN = {"ms": 0}
SAYS = (
    Saying(
        "link NODE OTHER jitters by MS ms",
        "Every frame between the two takes up to that long, each way.",
        {"a": "NODE", "b": "OTHER", "ms": "MS"},
    ),
)
DRAWN = Drawn()

SHARE = 2
"""A request and its answer take as much more as the number says, in the mean: half of it is seldom missed."""
SPREAD = 10
"""Two of them differ by a tenth of the number nearly always, and without jitter by less."""


def inject(rig: Rig, a: str, b: str, ms: int) -> None:
    rig.trouble(Trouble.JITTER, a, b, ms)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests that a broker answers at once took longer than before, in the median, and not all as long."""
    ms, took = number_of(fault), quick_during(rows, fault)
    if not ms or not took or (max(took) - min(took)) * SPREAD < ms * 1000:
        return None
    told = took_longer(rows, fault, ms * 1000 // SHARE)
    return told and f"{told}, and each from {min(took) / 1000:.0f} to {max(took) / 1000:.0f} ms"
