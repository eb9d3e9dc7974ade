"""A broker ends in good order, and another version begins on its store; later its own version takes that store back.

An upgrade that every team does, and the downgrade that it hopes not to need. What the new version reads otherwise than
the old one wrote it is lost or misread at that moment alone: offsets, leases that were handed on, half messages,
delayed ones. Going back is worse: nobody has promised that an old version reads what a newer one wrote. In between,
clients of one version speak to brokers of another.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import has_changed, names_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind

VERB = "upgrade"
RANK = 27
SUBJECT = Subject.BROKER
ARGS = {"broker": (NODE, True), "same": ("boolean", False)}
NEEDS = Ability.UPGRADE_BROKER
HEALED_BY = "downgrade"
REQUESTS = Requests.SPARES
TWIN = {"same": True}
SAYS = (
    Saying(
        "NODE is upgraded",
        "A broker ends in good order, and another version begins on its store.",
        {"broker": "NODE"},
    ),
)
HEALING_SAYS = (
    Saying("NODE is downgraded", "Its own version takes the store back.", {"broker": "NODE"}),
)


def inject(rig: Rig, broker: str, *, same: bool = False) -> None:
    rig.exchange(broker, newer=not same)


def heal(rig: Rig, broker: str) -> None:
    rig.exchange(broker, newer=False)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """What the broker itself said of its version before it ended, and what the next one said on its store."""
    ends_us = fault.ended_us
    for broker in names_of(fault):
        changes = [
            row.view
            for row in rows
            if row.kind is Kind.CRASH
            and row.broker == broker
            and row.started_us >= fault.started_us
            and (ends_us is None or row.started_us <= ends_us)
            and has_changed(row.view)
        ]
        if changes:
            return f"{broker} said of its version: {', then '.join(map(str, changes))}"
    return None
