"""A broker dies without a word: its memory is lost, its store is not.

With its memory goes the table of leases, so that the next life grants anew what a client still believes to own; what
was consumed since the last persisted offsets is delivered again; and what was answered before it was synced may be
gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import ASKED, IN_VAIN, answered_afterwards, names_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind, Outcome

VERB = "broker_crash"
RANK = 20
SUBJECT = Subject.BROKER
ARGS = {"broker": (NODE, True)}
NEEDS = Ability.CRASH_BROKER
HEALED_BY = "broker_restart"
REQUESTS = Requests.SPARES
SAYS = (Saying("NODE crashes", "A broker keeps what it had written.", {"broker": "NODE"}),)
HEALING_SAYS = (Saying("NODE restarts", "A broker comes again on its store.", {"broker": "NODE"}),)


def inject(rig: Rig, broker: str) -> None:
    rig.kill(broker)


def heal(rig: Rig, broker: str) -> None:
    rig.revive(broker)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Requests that it left without an answer until it answered again, or that none was answered before it was back.

    Of a broker of several nodes nobody need notice that one died: its row says how many live on.
    """
    for broker in names_of(fault):
        deaths = [row for row in rows if _is_death(row, broker, fault)]
        for death in deaths:
            if death.value:
                return f"one node of {broker} died, and {death.value} lived on"
        if deaths:
            away = fault._replace(started_us=deaths[0].started_us)
            shown = _in_vain(rows, broker, fault) or answered_afterwards(rows, away, "it was back")
            if shown is not None:
                return shown
    return None


def _in_vain(rows: Sequence[Row], broker: str, fault: Row) -> str | None:
    asked = [row for row in rows if row.kind in ASKED and row.broker == broker]
    again_us = min(
        (
            row.started_us
            for row in asked
            if row.outcome is Outcome.OK and row.started_us > fault.started_us
        ),
        default=None,
    )
    lost = [
        row
        for row in asked
        if row.outcome in IN_VAIN
        and (row.ended_us is None or row.ended_us >= fault.started_us)
        and (again_us is None or row.started_us <= again_us)
    ]
    return f"{len(lost)} requests to {broker} were not answered with success" if lost else None


def _is_death(row: Row, broker: str, fault: Row) -> bool:
    return row.kind is Kind.CRASH and row.broker == broker and row.started_us >= fault.started_us
