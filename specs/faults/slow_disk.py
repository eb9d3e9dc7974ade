"""A broker's disk takes so many milliseconds longer for each sync: a neighbour writes, or a controller rebuilds.

Nothing fails and nothing is refused, but all that waits for a sync is late. Who answers before the sync has told for so
much longer what is not yet true; who syncs in the thread that also grants leases grants them late; and a producer that
gives up too soon has sent what is stored all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from specs.history.evidence import during, names_of, number_of, took_us
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind, Outcome

VERB = "slow_disk"
RANK = 35
SUBJECT = Subject.BROKER
ARGS = {"broker": (NODE, True), "ms": ("integer", True)}
NEEDS = Ability.SLOW_DISK
HEALED_BY = "disk_fast"
REQUESTS = Requests.HOLDS
TWIN = {"ms": 0}
SAYS = (
    Saying(
        "disk of NODE takes MS ms for a sync",
        "Each sync of a broker takes so much longer, and so does what waits for it.",
        {"broker": "NODE", "ms": "MS"},
    ),
)
HEALING_SAYS = (
    Saying("disk of NODE is fast", "It syncs as fast as ever again.", {"broker": "NODE"}),
)
_US = 1_000


def inject(rig: Rig, broker: str, ms: int) -> None:
    rig.slow_disk(broker, ms)


def heal(rig: Rig, broker: str) -> None:
    rig.quicken_disk(broker)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Sends that waited for their sync: the median took at least half the fault's number longer than at other times."""
    ms, names = number_of(fault), names_of(fault)
    if not ms:
        return None
    lasted = [row for row in rows if _is_alike(row, names)] or [fault]
    sent = [row for row in rows if row.kind is Kind.SEND and row.broker in names]
    stored = [row for row in sent if row.outcome is Outcome.OK and row.ended_us is not None]
    late = [took_us(row) for row in stored if during(row, fault)]
    usual = [took_us(row) for row in stored if not any(during(row, each) for each in lasted)]
    before_us = median(usual) if usual else 0.0
    if not late or median(late) - before_us < ms * _US / 2:
        return None
    return (
        f"the median of {len(late)} sends took {median(late) / _US:.0f} ms "
        f"instead of {before_us / _US:.1f} ms"
    )


def _is_alike(row: Row, names: Sequence[str]) -> bool:
    """Does it tell of such a fault of the same broker?"""
    verb = (row.detail or "").partition(" ")[0]
    return row.kind is Kind.FAULT and verb == VERB and names_of(row) == tuple(names)
