"""A link carries so many kilobytes a second, each way; what is more waits for its turn.

As where a backup, or a neighbour, has the line. Not the distance but the queue makes a request late: a renewal waits
behind the messages of a pull, and a commit behind a batch that is sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import number_of, took_longer
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "throttle"
RANK = 74
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "kb_per_s": ("integer", True)}
NEEDS = Ability.SHAPE_LINK
HEALED_BY = "heal"
REQUESTS = Requests.HOLDS
TWIN = {"kb_per_s": 1_000_000}
SAYS = (
    Saying(
        "link NODE OTHER carries COUNT kB/s",
        "What is more than that waits for its turn, each way.",
        {"a": "NODE", "b": "OTHER", "kb_per_s": "COUNT"},
    ),
)
DRAWN = Drawn(most=4)

LEAST_BYTES = 200
"""No request has fewer, together with its answer."""
LEAST_MS = 10
"""What a busy machine does without any fault is no proof."""


def inject(rig: Rig, a: str, b: str, kb_per_s: int) -> None:
    rig.trouble(Trouble.THROTTLE, a, b, kb_per_s)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests that a broker answers at once took as much longer than before as their bytes need, in the median."""
    kb_per_s = number_of(fault)
    if not kb_per_s:
        return None
    return took_longer(rows, fault, 1000 * max(LEAST_MS, LEAST_BYTES // kb_per_s))
