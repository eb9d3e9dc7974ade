"""A broker answers the next request of a code with an error (SYSTEM_BUSY, if nothing else is said) and does not do it.

As a broker under load, one that is no master any more, or one whose store is not ready. Who takes an error for an
answer drops what should be tried again: a lane whose renewal was refused, an offset that was never stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import IN_VAIN, asked_during
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "request_error"
RANK = 115
SUBJECT = Subject.LINK
ARGS = {
    "a": (NODE, True),
    "b": (NODE, True),
    "code": ("integer", True),
    "error": ("integer", False),
}
NEEDS = Ability.REFUSE_REQUEST
HEALED_BY = "heal"
REQUESTS = Requests.LOSES
SAYS = (
    Saying(
        "next request REQUEST from NODE to OTHER is answered with CODE",
        "The next request of that name gets that error and is not done.",
        {"a": "NODE", "b": "OTHER", "code": "REQUEST", "error": "CODE"},
    ),
)
SYSTEM_BUSY = 2


def inject(rig: Rig, a: str, b: str, code: int, error: int = SYSTEM_BUSY) -> None:
    rig.trouble(Trouble.REFUSE_NEXT, a, b, code, error=error)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests over the link that were answered with an error."""
    told = [row for row in asked_during(rows, fault) if row.outcome in IN_VAIN and row.code]
    return f"{len(told)} requests were answered with {told[0].code}" if told else None
