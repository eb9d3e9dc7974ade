"""So many frames of a hundred vanish on a link; its connections do not.

A client that was granted a lane and never hears of it, one whose commit was done and counts as lost: each frame that
is missing leaves two parties with different beliefs.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import in_vain
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Subject
from specs.plan.rig import Rig, Trouble

VERB = "lose"
RANK = 80
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "percent": ("integer", True)}
NEEDS = Ability.SPOIL_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LOSES
TWIN = {"percent": 0}
SAYS = ()
DRAWN = Drawn(most=60)


def inject(rig: Rig, a: str, b: str, percent: int) -> None:
    rig.trouble(Trouble.LOSE, a, b, percent)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests over the link that were not answered with success."""
    return in_vain(rows, fault, "frames were lost")
