"""The next request of a code vanishes on a link, or, with `answer`, the answer to it; then it is over.

The smallest fault there is, and for that the sharpest: with `answer` the request was done, and who asked can't know.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import in_vain
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "drop_next"
RANK = 110
SUBJECT = Subject.LINK
ARGS = {
    "a": (NODE, True),
    "b": (NODE, True),
    "code": ("integer", True),
    "answer": ("boolean", False),
}
NEEDS = Ability.DROP_REQUEST
HEALED_BY = "heal"
REQUESTS = Requests.LOSES
SAYS = (
    Saying(
        "next request REQUEST from NODE to OTHER is lost",
        "The next request of that name never arrives.",
        {"a": "NODE", "b": "OTHER", "code": "REQUEST"},
    ),
    Saying(
        "next answer to REQUEST from OTHER to NODE is lost",
        "The next request of that name is done, and nobody hears of it.",
        {"a": "NODE", "b": "OTHER", "code": "REQUEST"},
        {"answer": True},
    ),
)


def inject(rig: Rig, a: str, b: str, code: int, *, answer: bool = False) -> None:
    rig.trouble(Trouble.DROP_NEXT, a, b, code, answer=answer)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """A request over the link that was not answered with success."""
    return in_vain(rows, fault, "the fault waited for its request")
