"""A process is stopped between two instructions (SIGSTOP, a frozen container, a long garbage collection), and goes on.

Its connections stay open, so nobody hears of it: only its silence takes its lease away, and its membership. It wakes
up with a call half done and commits that are late, and believes what it believed before: nothing fences it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from specs.history.evidence import ASKED, WORK, is_of, names_of, takeover
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind

VERB = "pause"
RANK = 40
SUBJECT = Subject.PROCESS
ARGS = {"node": (NODE, True)}
NEEDS = Ability.PAUSE_CLIENT
NEEDS_OF_BROKER = Ability.PAUSE_BROKER
HEALED_BY = "resume"
REQUESTS = Requests.SPARES
SAYS = (Saying("NODE pauses", "A process is stopped; what arrives waits.", {"node": "NODE"}),)
HEALING_SAYS = (
    Saying("NODE resumes", "It goes on, and handles what has waited.", {"node": "NODE"}),
)
ALSO = ("pause_consumer",)


def inject(rig: Rig, node: str) -> None:
    rig.pause(node)


def heal(rig: Rig, node: str) -> None:
    rig.resume(node)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """It was silent for as long, and meanwhile another had its lanes, or what it was at had to wait for it."""
    for node in names_of(fault):
        pause = next(
            (
                row
                for row in rows
                if row.kind is Kind.PAUSE
                and (is_of(row, node) or row.broker == node)
                and row.started_us >= fault.started_us
            ),
            None,
        )
        if pause is None or pause.ended_us is None:
            continue
        shown = (
            _of_a_broker(rows, pause) if pause.broker == node else _of_a_client(rows, pause, node)
        )
        if shown is not None:
            return shown
    return None


def _of_a_client(rows: Sequence[Row], pause: Row, client: str) -> str | None:
    mine = [row for row in rows if row.kind in WORK and is_of(row, client)]
    since, until = _silence(mine, pause)
    if since is None or until is None:
        return None
    told = f"{client} was silent for {(until - since) / 1000:.0f} ms and went on"
    successor = takeover(rows, client, since)
    if successor is not None and successor.started_us <= until:
        return f"{told}; meanwhile {successor.party} delivered {successor.lane}"
    lasted_us = (pause.ended_us or pause.started_us) - pause.started_us
    if until - since < lasted_us // 2:
        return None
    # It goes on before the harness has written that it may: what waited ends with the silence, not with the row.
    waited = [
        row
        for row in mine
        if row.started_us <= since and row.ended_us is not None and row.ended_us >= until
    ]
    return f"{told}; {len(waited)} operations waited for it" if waited else None


def _silence(mine: Sequence[Row], pause: Row) -> tuple[int | None, int | None]:
    """The longest time around the pause in which the client did nothing, and after which it went on.

    Freezing and thawing take a moment, so the pause in the history is wider than what it did.
    """
    moments = sorted(
        [row.started_us for row in mine]
        + [row.ended_us for row in mine if row.ended_us is not None]
    )
    ends_us = pause.ended_us
    gaps = [
        (since, until)
        for since, until in pairwise(moments)
        if until >= pause.started_us and (ends_us is None or since <= ends_us)
    ]
    return max(gaps, key=lambda gap: gap[1] - gap[0], default=(None, None))


def _of_a_broker(rows: Sequence[Row], pause: Row) -> str | None:
    """Where nobody asked anew meanwhile, for all of them waited, those count that were under way when it began, if in
    the second half nothing was answered.
    """
    ends_us = pause.ended_us or pause.started_us
    asked = [row for row in rows if row.kind in ASKED and row.broker == pause.broker]
    under_way = [
        row
        for row in asked
        if row.started_us < ends_us and (row.ended_us is None or row.ended_us >= ends_us)
    ]
    waited = [row for row in under_way if row.started_us >= pause.started_us]
    half_us = (pause.started_us + ends_us) // 2
    if not any(row.ended_us is not None and half_us <= row.ended_us < ends_us for row in asked):
        waited = under_way
    return f"{len(waited)} requests waited for {pause.broker}" if waited else None
