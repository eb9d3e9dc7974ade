"""Once its dead letter was acknowledged, the same incarnation does not deliver a message again, now or later.

Where a call held several messages, one of them that was given up may come again as long as another one of them has to,
since a batch is put back as a whole: not once all of them were given up, nor after the others have come again without
it, nor after the batch succeeded: one row of a call tells how all of it ended, and where none does it may have been
put back. Where it comes again and is given up in vain, it has to come as well. Claimed in auto mode (in manual mode a
ROLLBACK replays what was given up as well): where nobody says the mode, until any manual call, or one that may have
been a manual ROLLBACK, since it ended so or nobody knows how. Another incarnation may deliver it: it may not know. Says
nothing where the dead letter was stored weakly (it may be lost, and sent again), nor of a message of several whose
batch is not in the history. Nothing is remembered across an ADD or a reset: what began before is of an earlier life,
and does not count when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.dead_letter.batches import BATCH_KINDS, BatchesJudge
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import AUTO_MODE, IN_PLACE, NO_RESET
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "DLQ-3"
TITLE = "a given-up message is not delivered again"
STATEMENT = (
    "After its dead letter was acknowledged, a message is not delivered again by the same incarnation, unless with "
    "others of its batch that have to come again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, AUTO_MODE, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = BATCH_KINDS
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class CameBack(Finding):
    """batch: the call that held it before, and what was given up of that; of calls of one message nothing."""

    given_up: Row
    again: Row
    batch: tuple[Row, ...] = ()


class LaneJudge(BatchesJudge):
    """Compares each delivery with what its incarnation gave up."""

    __slots__ = ()

    def begins(self, row: Row) -> Iterable[Finding]:
        work = self.work_of(row)
        if work is None or row.kind is not Kind.DELIVER or row.queue_offset is None:
            return NOTHING
        offset, found = row.queue_offset, False
        before = work.letters.get(offset)
        if before is not None and not work.manual:
            others_come = work.others_come(offset, row.op_id)
            found = others_come is False or (others_come is None and self.config.batch == 1)
        told = work.again.get(offset) is False
        batch = work.batch_of(offset) if self.config.batch > 1 else ()
        work.delivered(row, offset)
        if not found or before is None:
            return NOTHING
        work.again[offset] = False
        return NOTHING if told else (CameBack(before, row, batch),)

    def ends(self, row: Row) -> Iterable[Finding]:
        self.opportunities += self.ended(row)
        return NOTHING


judge = LaneJudge


def explain(found: CameBack) -> str:
    before, again = found.given_up, found.again
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, although the dead "
        f"letter that it had sent at {at(before)} was acknowledged"
    )
