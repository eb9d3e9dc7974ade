"""The name server dies without a word, and comes back knowing nothing.

Who is at work goes on by the routes that it has, and need not notice. Who comes meanwhile, or comes again after a
crash, finds nobody to ask where the brokers are, and has to go on asking; and until the brokers have told the new one
of themselves, it answers that there is no such topic, which nobody may take for the truth. Where some have and others
have not, it tells of some queues only, and clients let go of the others: brokers tell it of themselves each half
minute, and clients ask it as often.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.evidence import WORK, is_of
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import Arguments
from specs.plan.fault import Requests, Saying, Subject
from specs.plan.rig import NAME_SERVER, Rig
from specs.vocabulary import Kind

VERB = "name_server_crash"
RANK = 26
SUBJECT = Subject.NAME_SERVER
ARGS: Arguments = {}
NEEDS = Ability.CRASH_NAME_SERVER
HEALED_BY = "name_server_restart"
LINGERS_MS = 60_000
REQUESTS = Requests.SPARES
SAYS = (Saying("name server crashes", "The name server is gone, with all that it knew.", {}),)
HEALING_SAYS = (
    Saying("name server restarts", "It is back, and knows what brokers tell it from now on.", {}),
)
_DONE = WORK | {Kind.ASSIGN}


def inject(rig: Rig) -> None:
    rig.kill(NAME_SERVER)


def heal(rig: Rig) -> None:
    rig.revive(NAME_SERVER)


def attest(rows: Sequence[Row], fault: Row) -> str | None:
    """Who came meanwhile did nothing before it was back: it dealt out no queues, since it knew of none."""
    ends_us = fault.ended_us
    if ends_us is None:
        return None
    for row in rows:
        if row.kind is not Kind.JOIN or row.client_id is None:
            continue
        if not fault.started_us <= row.started_us <= ends_us:
            continue
        done = (
            each
            for each in rows
            if each.kind in _DONE and each.seq_begin > row.seq_begin and is_of(each, row.client_id)
        )
        if all(each.started_us >= ends_us for each in done):
            waited_ms = (ends_us - row.started_us) / 1000
            return f"{row.client_id} came meanwhile, and did nothing for {waited_ms:.0f} ms until it was back"
    return None
