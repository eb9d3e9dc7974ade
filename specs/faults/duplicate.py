"""So many frames of a hundred come twice on a link.

TCP does not do that; a client that tries again after a timeout, or a proxy, does. A request that is done twice stores
a message twice, and a late copy of a commit moves an offset back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from specs.history.evidence import during
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Subject
from specs.plan.rig import Rig, Trouble
from specs.vocabulary import Kind

VERB = "duplicate"
RANK = 90
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "percent": ("integer", True)}
NEEDS = Ability.SPOIL_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LOSES
TWIN = {"percent": 0}
SAYS = ()
DRAWN = Drawn(most=100, only_in="frames")


def inject(rig: Rig, a: str, b: str, percent: int) -> None:
    rig.trouble(Trouble.DUPLICATE, a, b, percent)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Messages that a broker stored more than once while it lasted; of other requests a history shows no copies."""
    stored = Counter(
        (row.message_id, row.queue)
        for row in rows
        if row.kind is Kind.APPEND and row.message_id is not None and during(row, fault)
    )
    twice = [message for (message, _), times in stored.items() if times > 1]
    return f"{', '.join(sorted(twice))} stored more than once" if twice else None
