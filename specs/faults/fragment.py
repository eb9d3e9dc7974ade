"""What a link carries arrives in pieces of so many bytes, some milliseconds apart.

A frame is complete only with its last piece, and two frames share one piece. Who reads once and takes that for a whole
frame, or forgets what came behind it, reads nonsense from then on; who waits for the rest holds others up.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from specs.history.evidence import number_of, took_longer
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Saying, Subject
from specs.plan.rig import FRAGMENT_GAP_MS, Rig, Trouble

VERB = "fragment"
RANK = 76
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "piece_bytes": ("integer", True)}
NEEDS = Ability.SHAPE_LINK
HEALED_BY = "heal"
REQUESTS = Requests.HOLDS
TWIN = {"piece_bytes": 1_000_000_000}
SAYS = (
    Saying(
        "link NODE OTHER carries pieces of COUNT bytes",
        "A frame is there when its last piece is.",
        {"a": "NODE", "b": "OTHER", "piece_bytes": "COUNT"},
    ),
)
DRAWN = Drawn(most=60)

LEAST_BYTES = 100
"""No request has fewer, and no answer: so much takes its header alone."""


def inject(rig: Rig, a: str, b: str, piece_bytes: int) -> None:
    rig.trouble(Trouble.FRAGMENT, a, b, piece_bytes)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests that a broker answers at once took as much longer than before as the gaps need, in the median."""
    gaps = 2 * (ceil(LEAST_BYTES / (number_of(fault) or LEAST_BYTES)) - 1)
    return took_longer(rows, fault, gaps * FRAGMENT_GAP_MS * 1000) if gaps else None
