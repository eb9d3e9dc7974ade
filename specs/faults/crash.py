"""A client dies without a word (SIGKILL), or its whole machine does.

The nastiest moment is in the middle of a listener's call, while it holds the lease: the call is half done, nothing of
it is committed, and until its lease has run out nobody else may work. Where its machine dies (`silent`), not even its
connections are seen to close, and its group takes it for a member until its heartbeat is missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import WORK, is_of, names_of, takeover
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind

VERB = "crash"
RANK = 10
SUBJECT = Subject.CLIENT
ARGS = {"client": (NODE, True), "silent": ("boolean", False)}
NEEDS = Ability.CRASH_CLIENT
HEALED_BY = "restart"
REQUESTS = Requests.SPARES
SAYS = (
    Saying("NODE crashes", "A process dies; its connections close.", {"client": "NODE"}),
    Saying(
        "CONSUMER crashes silently",
        "A consumer's machine dies: nobody sees its connections close.",
        {"client": "CONSUMER"},
        {"silent": True},
    ),
)
HEALING_SAYS = (
    Saying(
        "NODE restarts",
        "A consumer that stopped or crashed comes as a new process with a new client id.",
        {"client": "NODE"},
    ),
)
ALSO = ("kill_consumer",)


def inject(rig: Rig, client: str, *, silent: bool = False) -> None:
    rig.kill(client, silent=silent)


def heal(rig: Rig, client: str) -> None:
    rig.revive(client)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """It did nothing until it came again; who had its lanes next."""
    for client in names_of(fault):
        death = next(
            (
                row
                for row in rows
                if row.kind is Kind.CRASH
                and is_of(row, client)
                and row.started_us >= fault.started_us
            ),
            None,
        )
        if death is None:
            continue
        mine = [row for row in rows if is_of(row, client) and row.seq_begin > death.seq_begin]
        back = next((row for row in mine if row.kind is Kind.JOIN), None)
        if any(
            row.kind in WORK and (back is None or row.seq_begin < back.seq_begin) for row in mine
        ):
            continue
        successor = takeover(rows, client, death.started_us)
        if successor is None:
            return f"{client} fell silent"
        after_ms = (successor.started_us - death.started_us) / 1000
        return f"{client} fell silent; {successor.party} delivered {successor.lane} {after_ms:.0f} ms later"
    return None
