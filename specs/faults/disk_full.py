"""A broker's disk is full: it refuses what is sent, and gives what it has, until there is room again.

A producer that goes on with the next message of a key, when one in the middle of it was refused, breaks the key's
order; a dead letter that is refused must not be taken for given up.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import during, names_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind, Outcome

VERB = "disk_full"
RANK = 30
SUBJECT = Subject.BROKER
ARGS = {"broker": (NODE, True)}
NEEDS = Ability.FILL_DISK
HEALED_BY = "disk_room"
REQUESTS = Requests.SPARES
SAYS = (
    Saying(
        "disk of NODE is full",
        "A broker has no room left: it refuses what is sent, and gives what it has.",
        {"broker": "NODE"},
    ),
)
HEALING_SAYS = (Saying("disk of NODE has room", "It takes messages again.", {"broker": "NODE"}),)
_WRITES = frozenset({Kind.SEND, Kind.DEAD_LETTER, Kind.SEND_BACK})


def inject(rig: Rig, broker: str) -> None:
    rig.fill_disk(broker)


def heal(rig: Rig, broker: str) -> None:
    rig.make_room(broker)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """What it refused to store."""
    brokers = (None, *names_of(fault))
    refused = [
        row
        for row in rows
        if row.kind in _WRITES
        and row.outcome in (Outcome.REFUSED, Outcome.UNKNOWN)
        and row.broker in brokers
        and during(row, fault)
    ]
    return f"{len(refused)} messages were not stored" if refused else None
