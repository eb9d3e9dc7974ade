"""Nobody is handed a message while another member's lease of it lives.

Judged whenever a message is handed out that somebody else had before: the lease before has to have ended, by its time,
by an acknowledgement or a release, or with its holder. Only two hand-outs refute of which the later one certainly came
in the other's lifetime, wherever between question and answer either was made (`specs.clauses.message_leases`). Says
nothing about a member that works on when its lease is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.message_leases import CONNECTED, OF_LEASES, HandOuts
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.clauses.words import at, ms, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "PML-1"
TITLE = "one holder of a message at a time"
STATEMENT = "No two members of a group hold one message under leases that live at the same time."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED)
SOURCES = ("docs/sources.md#leases-of-messages",)
REFINES = ("PML-2",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE})


@dataclass(frozen=True, slots=True)
class TwoHolders(Finding):
    first: Row
    second: Row


class LaneJudge(Judge):
    """Remembers the last hand-out of each message."""

    __slots__ = ("handed",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.handed = HandOuts(context)

    def begins(self, row: Row) -> Iterable[Finding]:
        self.handed.asked(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.RECEIVE:
            self.handed.answered(row)
            return NOTHING
        before = self.handed.handed_out(row)
        if before is None or before.row.client_id == row.client_id:
            return NOTHING
        self.opportunities += 1
        return (TwoHolders(before.row, row),) if self.handed.meet(before, row) else NOTHING


judge = LaneJudge


def explain(found: TwoHolders) -> str:
    first, second = sorted((found.first, found.second), key=lambda row: row.seq_begin)
    later = ms((second.ended_us or second.started_us) - first.started_us)
    return (
        f"{who(second)} was handed offset {second.queue_offset} of {second.lane} at {at(second)}, at most {later} "
        f"after {who(first)} had been handed it at {at(first)}, whose lease had not ended"
    )
