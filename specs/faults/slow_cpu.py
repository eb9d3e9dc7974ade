"""A process gets few per cent of a core: its host is overloaded, or its container has used up its share.

It stops and goes on ten times a second (SIGSTOP, SIGCONT), as a quota of the kernel does it. It answers everybody, and
everything late: it renews a lease just before its end or just after, and looks at a clock long before it acts on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from specs.faults import pause
from specs.history.evidence import QUICK, during, is_of, names_of, number_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import STOOD_STILL, Kind

VERB = "slow_cpu"
RANK = 45
SUBJECT = Subject.PROCESS
ARGS = {"node": (NODE, True), "percent": ("integer", True)}
NEEDS = Ability.STARVE_CLIENT
NEEDS_OF_BROKER = Ability.STARVE_BROKER
HEALED_BY = pause.HEALED_BY
REQUESTS = Requests.SPARES
TWIN = {"percent": 100}
SAYS = (
    Saying(
        "NODE gets COUNT percent of a core",
        "A process runs for so many ms of each hundred, and stands still for the rest.",
        {"node": "NODE", "percent": "COUNT"},
    ),
)
ALSO = ("slow_node",)
_LEAST_US = 5_000


def inject(rig: Rig, node: str, percent: int) -> None:
    rig.starve(node, percent)


def heal(rig: Rig, node: str) -> None:
    rig.resume(node)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Calls of its listener, or a broker's answers to what it answers at once, took so much longer on average than
    while it ran as ever.
    """
    if number_of(fault) == 100:
        return None
    for node in names_of(fault):
        mine = [row for row in rows if _shows(row, node)]
        stops = [
            row
            for row in rows
            if row.kind is Kind.PAUSE
            and row.detail != STOOD_STILL
            and (row.broker == node or is_of(row, node))
        ]
        slow = [_took_us(row) for row in mine if during(row, fault)]
        usual = [_took_us(row) for row in mine if not any(_meet(row, stop) for stop in stops)]
        if slow and usual and mean(slow) >= mean(usual) + _LEAST_US:
            return (
                f"what {node} does at once took {mean(slow) / 1000:.0f} ms on average instead of "
                f"{mean(usual) / 1000:.1f} ms"
            )
    return None


def _meet(row: Row, stop: Row) -> bool:
    return row.started_us <= _end_us(stop) and stop.started_us <= _end_us(row)


def _shows(row: Row, node: str) -> bool:
    if row.ended_us is None:
        return False
    return (row.kind in QUICK and row.broker == node) or (
        row.kind is Kind.DELIVER and is_of(row, node)
    )


def _end_us(row: Row) -> int:
    return row.started_us if row.ended_us is None else row.ended_us


def _took_us(row: Row) -> int:
    return _end_us(row) - row.started_us
