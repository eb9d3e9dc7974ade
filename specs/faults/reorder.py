"""Every frame of a link takes up to so many milliseconds more, and frames overtake each other.

As where requests go over several connections, or several threads of a broker: an unlock that overtakes the renewal
before it, a commit that overtakes a later one.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import QUICK, asked_during
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Drawn, Requests, Subject
from specs.plan.rig import Rig, Trouble

VERB = "reorder"
RANK = 100
SUBJECT = Subject.LINK
ARGS = {"a": (NODE, True), "b": (NODE, True), "ms": ("integer", True)}
NEEDS = Ability.SPOIL_LINK
HEALED_BY = "heal"
REQUESTS = Requests.LATER
TWIN = {"ms": 0}
SAYS = ()
DRAWN = Drawn(only_in="frames")


def inject(rig: Rig, a: str, b: str, ms: int) -> None:
    rig.trouble(Trouble.REORDER, a, b, ms)


def heal(rig: Rig, a: str, b: str) -> None:
    rig.mend(a, b)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests of one client to one broker that were answered in another order than they were made in."""
    latest: dict[tuple[str | None, str | None], int] = {}
    overtaken = 0
    asked = [
        row for row in asked_during(rows, fault) if row.kind in QUICK and row.ended_us is not None
    ]
    for row in sorted(asked, key=lambda row: row.seq_begin):
        link, ended_us = (row.client_id, row.broker), row.ended_us or 0
        overtaken += ended_us < latest.get(link, 0)
        latest[link] = max(ended_us, latest.get(link, 0))
    return f"{overtaken} requests overtook an earlier one" if overtaken else None
