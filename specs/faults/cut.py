"""A link is cut: connections are reset with all that was under way, and new ones are refused.

Both sides hear of it, and neither knows what became of the last request. Grants run out on both sides without a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import answered_afterwards, in_vain
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Saying, Subject
from specs.plan.rig import Rig, Trouble

VERB = "cut"
RANK = 50
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True)}
NEEDS = Ability.BREAK_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LOSES
SAYS = (
    Saying(
        "link NODE OTHER is cut",
        "Connections between the two are reset, new ones refused.",
        {"a": "NODE", "b": "OTHER"},
    ),
)
HEALING_SAYS = (
    Saying(
        "link NODE OTHER is healed",
        "All faults between the two end.",
        {"a": "NODE", "b": "OTHER"},
    ),
)
ALSO = ("link_down",)
DRAWN = Drawn(times=2)


def inject(rig: Rig, a: str, b: str) -> None:
    rig.trouble(Trouble.CUT, a, b)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests over the link that were not answered with success, or that none was answered before its end."""
    lost = in_vain(rows, fault, "the link was cut")
    return lost or answered_afterwards(rows, fault, "the link was well again")
