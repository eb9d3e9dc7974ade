"""A link lets nothing through in one direction: requests never arrive or, with `answer`, answers never do.

The connections live, and each side sees only half of what is wrong. Without answers the broker does what it is asked,
renews leases and stores messages, and nobody hears of it; without requests it forgets a client that hears all it says.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import in_vain
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Subject
from specs.plan.rig import Rig, Trouble

VERB = "one_way"
RANK = 65
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "answer": ("boolean", False)}
NEEDS = Ability.BREAK_ONE_WAY
HEALED_BY = "heal"
REQUESTS = Requests.HOLDS
SAYS = ()


def inject(rig: Rig, a: str, b: str, *, answer: bool = False) -> None:
    rig.trouble(Trouble.ONE_WAY, a, b, answer=answer)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests over the link that were not answered with success."""
    return in_vain(rows, fault, "one direction was dead")
