"""A broker's machine loses its power: whatever its disk was not told to keep is gone, and with it the memory.

A killed process leaves all that it wrote, since the machine still holds it; only a power cut tells an answer that was
given after the sync from one that was given before. `synced`: everything is on the disk first, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.faults import broker_crash
from specs.history.evidence import names_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind, Outcome

VERB = "power_cut"
RANK = 25
SUBJECT = Subject.BROKER
ARGS = {"broker": (NODE, True), "synced": ("boolean", False)}
NEEDS = Ability.CUT_POWER
HEALED_BY = broker_crash.HEALED_BY
REQUESTS = Requests.SPARES
TWIN = {"synced": True}
SAYS = (
    Saying(
        "NODE loses its power",
        "What a broker's disk was not told to keep is gone.",
        {"broker": "NODE"},
    ),
)


def inject(rig: Rig, broker: str, *, synced: bool = False) -> None:
    rig.cut_power(broker, synced=synced)


def heal(rig: Rig, broker: str) -> None:
    rig.revive(broker)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """What the rig saw to be lost (`view` of the CRASH row), and how many acknowledged messages are gone."""
    for broker in names_of(fault):
        deaths = [row for row in rows if row.kind is Kind.CRASH and row.broker == broker]
        death = next((row for row in deaths if row.started_us >= fault.started_us), None)
        if death is None or death.view is None:
            continue
        since = max(
            (row.seq_begin for row in deaths if row.seq_begin < death.seq_begin), default=-1
        )
        return f"{death.view}; {_told_of_lost(rows, since, death)}"
    return None


def _told_of_lost(rows: Sequence[Row], since: int, death: Row) -> str:
    """Of the messages that the broker took in this life and acknowledged, how many nobody finds at the end."""
    found = {row.message_id for row in rows if row.kind is Kind.READ and row.outcome is Outcome.OK}
    acknowledged = {
        row.message_id
        for row in rows
        if row.kind is Kind.SEND
        and row.outcome is Outcome.OK
        and row.broker == death.broker
        and since < row.seq_begin < death.seq_begin
        and row.ended_us is not None
        and row.ended_us <= death.started_us
    }
    return f"{len(acknowledged - found)} of {len(acknowledged)} acknowledged messages are gone"
