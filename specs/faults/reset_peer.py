"""Each connection of a link is reset so many milliseconds after its first request or, with `answer`, its first answer.

That frame is lost, and so is all that follows it in its direction until the reset: a connect succeeds, and nothing
comes of it. As behind a load balancer whose backend is gone, or a firewall that has forgotten the connection. With
`answer` the broker does all that it is asked, and who asked sees a reset, asks again, and has it done twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import broken_off
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "reset_peer"
RANK = 68
SUBJECT = Subject.LINK
ARGS = {
    "a": (NODE, True),
    "b": (NODE, True),
    "ms": ("integer", True),
    "answer": ("boolean", False),
}
NEEDS = Ability.SHAPE_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LOSES
SAYS = (
    Saying(
        "link NODE OTHER is reset MS ms after a request",
        "A connection's requests are lost, and it is reset that long after the first one.",
        {"a": "NODE", "b": "OTHER", "ms": "MS"},
    ),
    Saying(
        "link NODE OTHER is reset MS ms after an answer",
        "Requests are done, their answers are lost, and the connection is reset that long after the first one.",
        {"a": "NODE", "b": "OTHER", "ms": "MS"},
        {"answer": True},
    ),
)
DRAWN = Drawn(most=300)


def inject(rig: Rig, a: str, b: str, ms: int, *, answer: bool = False) -> None:
    rig.trouble(Trouble.RESET_PEER, a, b, ms, answer=answer)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests over the link whose connection ended before their answer."""
    return broken_off(rows, fault, "connections were reset")
