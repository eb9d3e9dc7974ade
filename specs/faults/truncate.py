"""Each connection of a link ends once it has carried so many bytes in one direction, mostly in the middle of a frame.

As behind a proxy with a quota, or where a process dies while it writes. Half a request must do nothing, half an answer
tells nothing, and whoever connects again must begin at the head of a frame; so it goes again and again.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import broken_off
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "truncate"
RANK = 66
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "after_bytes": ("integer", True)}
NEEDS = Ability.SHAPE_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LOSES
TWIN = {"after_bytes": 1_000_000_000}
SAYS = (
    Saying(
        "link NODE OTHER ends each COUNT bytes",
        "A connection between the two ends with that many bytes in one direction.",
        {"a": "NODE", "b": "OTHER", "after_bytes": "COUNT"},
    ),
)
DRAWN = Drawn()


def inject(rig: Rig, a: str, b: str, after_bytes: int) -> None:
    rig.trouble(Trouble.TRUNCATE, a, b, after_bytes)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests over the link whose connection ended before their answer."""
    return broken_off(rows, fault, "connections were truncated")
