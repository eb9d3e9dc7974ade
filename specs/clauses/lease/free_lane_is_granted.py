"""A lane that is free, the asker's own, or held by an expired grant, is granted when asked for.

A refusal refutes where the lane's last certain grant shows that nobody could hold it against the asker: it was the
asker's own; or its owner gave it back and was told so; or it is strictly older than the broker's limit (in whole
milliseconds of the broker's clock). Anybody else's request since then that was not refused, answered or not, may
hold the lane, and then nothing is claimed. A refusal with an error code says nothing about the lane.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    BROKER_LIVES,
    NO_FRAME_TWICE,
    NO_WALL_CLOCK_STEP,
    NOTHING,
    Finding,
    at,
    ms,
)
from specs.clauses.grants import Free, LastGrantJudge
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-4"
TITLE = "a free lane is granted"
STATEMENT = "A lane that is free, the asker's own or expired is granted when asked for."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
NEEDS = frozenset({Kind.LOCK})
CONCLUDES_FROM_ABSENCE = True


@dataclass(frozen=True, slots=True)
class Refused(Finding):
    """unlock: the owner's, where that freed the lane; else None."""

    grant: Row
    unlock: Row | None
    refused: Row


class LaneJudge(LastGrantJudge):
    """Wants every lane granted that is free for the asker."""

    __slots__ = ()

    def free(self, row: Row, grant: Row, why: Free) -> Iterable[Finding]:
        self.opportunities += 1
        if row.outcome is Outcome.OK:
            return NOTHING
        return (Refused(grant, self.last.unlock if why is Free.RELEASED else None, row),)


judge = LaneJudge


def explain(found: Refused) -> str:
    grant, unlock, refused = found.grant, found.unlock, found.refused
    asked = f"{refused.client_id} was refused {refused.lane} at {at(refused)}"
    if grant.client_id == refused.client_id:
        return f"{asked}, although it had been granted it at {at(grant)} and nobody else since"
    if unlock is not None:
        return (
            f"{asked}, although {grant.client_id}, who was granted it at {at(grant)}, had given it back at "
            f"{at(unlock)} and nobody else had been granted it since"
        )
    age = ms(refused.started_us - (grant.ended_us or grant.started_us))
    return f"{asked}, although the last grant ({grant.client_id}'s of {at(grant)}) was {age} old"
